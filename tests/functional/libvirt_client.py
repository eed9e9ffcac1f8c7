# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The libvirt connection of one nova-compute process.

Every call first asks whether that process still lives. The calls of a killed
process never return, which is what SIGKILL looks like from inside: no
exception, no ``finally``, nothing after. Only the end of the test lets them
go, by ending their threads.
"""

from urllib import parse

from tests.functional import libvirt_api as api

#: What needs QEMU's monitor, or libvirt's lock on the domain, while a
#: migration runs.
NEEDS_MONITOR = frozenset([
    'abortJob', 'jobStats', 'jobInfo', 'blockJobInfo', 'blockJobAbort',
    'migrateToURI3', 'suspend', 'resume', 'attachDeviceFlags',
    'detachDeviceFlags', 'memoryStats', 'blockStats', 'blockRebase',
    'blockCopy', 'blockCommit', 'fsFreeze', 'fsThaw'])


class LibvirtClient(object):
    """A libvirt.virConnect as one nova-compute has it.

    :param process: the :class:`~tests.functional.process.ComputeProcess`
    :param hypervisor: what it is connected to
    """

    def __init__(self, process, hypervisor):
        self.process = process
        self.hypervisor = hypervisor
        self._hanging = 0

    def another(self, host=None):
        """Open another connection for the process.

        :param host: whose libvirt, or None for that of its own host
        """
        opened = LibvirtClient(
            self.process, self.process.world.hypervisors[host] if host else
            self.hypervisor)
        opened.call('open', None, lambda: None)
        return opened

    def close(self):
        return self.call('close', None, lambda: 0)

    def __getattr__(self, name):
        if name.startswith('_'):
            raise AttributeError(name)
        value = getattr(self.hypervisor.connection, name)
        if not callable(value):
            return value
        return lambda *a, **kw: self.call(name, None, value, *a, **kw)

    def call(self, name, uuid, function, *args, **kwargs):
        """Make one call for the process.

        :param name: libvirt's name of the method
        :param uuid: the domain that it is about, or None
        """
        self.process.live_or_hang()
        self.hypervisor.calls[name] += 1
        if self._hanging:
            self.hypervisor.slowed.append(name)
        for hook in list(self.hypervisor.before[name]):
            hook(self, uuid)
        if self.hypervisor.away:
            raise api.unavailable()
        result = function(*args, **kwargs)
        for hook in list(self.hypervisor.after[name]):
            hook(self, uuid)
        self.process.live_or_hang()
        return result

    def _wrap(self, domain):
        return ClientDomain(self, domain.uuid)

    def lookupByUUIDString(self, uuid):
        def look_up():
            if uuid not in self.hypervisor.domains:
                raise api.no_domain(uuid)
            return ClientDomain(self, uuid)
        return self.call('lookupByUUIDString', uuid, look_up)

    def lookupByName(self, name):
        def look_up():
            for domain in list(self.hypervisor.domains.values()):
                if domain.name() == name:
                    return self._wrap(domain)
            raise api.no_domain(name)
        return self.call('lookupByName', None, look_up)

    def listAllDomains(self, flags=0):
        # 1: VIR_CONNECT_LIST_DOMAINS_ACTIVE, 2: ..._INACTIVE,
        # 4: ..._PERSISTENT, 8: ..._TRANSIENT
        def list_all():
            wanted, kept = flags & 3 or 3, flags & 12 or 12
            return [self._wrap(domain) for domain in
                    list(self.hypervisor.domains.values())
                    if wanted & (1 if domain.active else 2) and
                    kept & (4 if domain.persistent else 8)]
        return self.call('listAllDomains', None, list_all)

    def getAllDomainStats(self, stats=0, flags=0):
        # 1: VIR_DOMAIN_STATS_STATE
        def states():
            found = []
            for domain in list(self.hypervisor.domains.values()):
                state, reason = domain.state_and_reason
                found.append((self._wrap(domain), {
                    'state.state': state, 'state.reason': reason}))
            return found
        return self.call('getAllDomainStats', None, states)

    def defineXML(self, xml):
        return self.call('defineXML', None, lambda: self._wrap(
            self.hypervisor.define(xml)))

    def defineXMLFlags(self, xml, flags=0):
        return self.defineXML(xml)

    def createXML(self, xml, flags=0):
        return self.call('createXML', None, lambda: self._wrap(
            self.hypervisor.run(xml)))


class ClientDomain(object):
    """A libvirt.virDomain as one nova-compute has it.

    Like the real one it stands for a UUID: it goes on working when the
    domain of that UUID was undefined and is there again.

    :param client: the :class:`LibvirtClient`
    :param uuid: the domain's UUID
    """

    def __init__(self, client, uuid):
        self._client = client
        self._uuid = uuid

    def UUIDString(self):
        return self._uuid

    def ID(self):
        # the real one remembers it, and asks nobody
        domain = self._client.hypervisor.domains.get(self._uuid)
        return -1 if domain is None else domain.ID()

    def __getattr__(self, name):
        if name.startswith('_'):
            raise AttributeError(name)

        def method(*args, **kwargs):
            return self._client.call(name, self._uuid, self._run, name,
                                     *args, **kwargs)
        return method

    def _run(self, name, *args, **kwargs):
        hypervisor = self._client.hypervisor
        domain = hypervisor.domains.get(self._uuid)
        if domain is None:
            raise api.no_domain(self._uuid)
        if name in NEEDS_MONITOR:
            if domain.hung:
                self._hang(domain)
            if name == 'abortJob':
                hypervisor.aborts.append(self._uuid)
            if name == 'migrateToURI3':
                return self._migrate(domain, *args, **kwargs)
        return getattr(domain, name)(*args, **kwargs)

    def _wait(self, predicate, what):
        """Wait as libvirt does: for ever, or until this process is gone."""
        process = self._client.process
        process.world.wait_for(
            lambda: not process.alive or predicate(), what)
        process.live_or_hang()

    def _hang(self, domain):
        self._client._hanging += 1
        self._wait(lambda: not domain.hung, 'the monitor answers')
        self._client._hanging -= 1

    def _migrate(self, domain, uri, params, flags):
        """migrateToURI3: returns when the job has ended."""
        host = parse.urlparse(uri).netloc.split(':')[0]
        self._client.process.world.migrate_called.add(domain.uuid)
        job = self._client.hypervisor.migrate(
            domain, host, params['destination_xml'], flags)
        self._wait(lambda: not job.running, 'the migration ends')
        if job.outcome == 'cancelled':
            raise api.error(
                api.ERR_OPERATION_ABORTED, 'operation aborted: migration '
                'out job: canceled by client')
        if job.outcome == 'failed':
            raise api.error(
                api.ERR_OPERATION_FAILED, 'operation failed: migration out '
                'job: unexpectedly failed')
        return 0
