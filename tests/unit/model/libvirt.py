# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""libvirt, as a process of the model sees it."""

from nova_migration_guard import libvirt_jobs

XML = '<domain><devices/></domain>'


class LibvirtError(Exception):
    def __init__(self, code):
        super(LibvirtError, self).__init__('libvirt error %d' % code)
        self._code = code

    def get_error_code(self):
        return self._code


class Connection(object):
    """The libvirt of one process's host, and the one domain that it knows.

    :param process: a :class:`~tests.unit.model.two_hosts.Process`
    :param uuid: the domain's UUID
    """

    def __init__(self, process, uuid):
        self._process = process
        self._uuid = uuid

    def _here(self):
        return self._process.world.domains.get(self._process.name)

    def getLibVersion(self):
        self._process.call()
        return 9000000

    def close(self):
        return 0

    def listAllDomains(self, flags):
        self._process.call()
        # the domain is never transient
        return [self] if self._here() and not flags else []

    def getAllDomainStats(self, stats):
        self._process.call()
        if not self._here():
            return []
        state, reason = self.state(0)
        return [(self, {'state.state': state, 'state.reason': reason})]

    def ID(self):
        return -1 if self._here() == 'off' else 1

    def lookupByUUIDString(self, uuid):
        self._process.call()
        if not self._here():
            raise LibvirtError(libvirt_jobs.NO_DOMAIN)
        return self

    def UUIDString(self):
        return self._uuid

    def isPersistent(self):
        return 1

    def isActive(self):
        return int(self._here() != 'off')

    def XMLDesc(self, flags):
        return XML

    def state(self, flags):
        self._process.call()
        states = libvirt_jobs.State
        return {'running': [states.RUNNING, 1],
                'paused': [states.PAUSED, 1],
                'off': [states.SHUTOFF,
                        libvirt_jobs.ShutoffReason.SHUTDOWN],
                'incoming': [states.PAUSED,
                             libvirt_jobs.PausedReason.MIGRATION],
                None: [states.SHUTOFF,
                       libvirt_jobs.ShutoffReason.MIGRATED]}[self._here()]

    def jobStats(self, flags):
        self._process.call()
        job = self._process.world.job
        if job is None:
            return {'type': 0}
        if job.destination == self._process.name:
            raise LibvirtError(libvirt_jobs.OPERATION_UNSUPPORTED)
        return {'type': 2, 'operation': 5}

    def blockJobInfo(self, disk, flags):
        return {}

    def abortJob(self):
        self._process.call()
        if self._process.world.aborts and self._process.world.job:
            self._process.world.fail()
        return 0

    def suspend(self):
        self._process.call()
        self._process.world.domains[self._process.name] = 'paused'

    def resume(self):
        self._process.call()
        self._process.world.domains[self._process.name] = 'running'
