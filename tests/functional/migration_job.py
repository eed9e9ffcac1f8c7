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

"""A migration job of the model: QEMU and libvirt go on with it by themselves.

What it does was measured with libvirt 9.0 and QEMU 7.2: the client that
started a peer-to-peer migration may die, and the job goes on.
"""

import time

from tests.functional import libvirt_api as api

#: Percent of a migration with its disks until memory is copied.
DISKS = 50


class MigrationJob(object):
    """One migration of a guest from one hypervisor to another.

    :param domain: the :class:`~tests.functional.domain.Domain` that leaves
    :param destination: the hypervisor it goes to
    :param xml: its definition there
    :param flags: virDomainMigrateFlags
    """

    def __init__(self, domain, destination, xml, flags):
        self.uuid = domain.uuid
        self.source = domain.hypervisor
        self.destination = destination
        self.percent = 0
        #: None while it runs; 'completed', 'cancelled' or 'failed'
        self.outcome = None
        #: true while libvirt has accepted an abort and QEMU has not ended
        self.cancelling = False
        self.postcopy = False
        self._flags = flags
        self._began = time.monotonic()
        self._paused_by_user = not domain.running
        self._domain = domain
        self._arriving = destination.receive(xml, self)
        domain.outgoing = self
        if self.copies_disks:
            destination.disks.fill(self.uuid, 0)

    @property
    def copies_disks(self):
        return bool(self._flags & (api.MIGRATE_NON_SHARED_DISK |
                                   api.MIGRATE_NON_SHARED_INC))

    @property
    def running(self):
        return self.outcome is None

    def stats(self):
        """What jobStats says on the source."""
        # the disks first, then memory
        done, total = self.percent, 100
        memory = 0 if self.copies_disks and done <= DISKS else done
        return {'type': (api.JOB_CANCELLED if self.cancelling else
                         api.JOB_UNBOUNDED),
                'operation': api.OPERATION_MIGRATION_OUT,
                'time_elapsed': int((time.monotonic() - self._began) * 1000),
                'data_total': total, 'data_processed': done,
                'data_remaining': total - done,
                'memory_total': total, 'memory_processed': memory,
                'memory_remaining': total - memory,
                'disk_total': total, 'disk_processed': done,
                'disk_remaining': total - done}

    # ---- what QEMU does by itself; a scenario says when

    def copied(self, percent):
        """So much of disk and memory has arrived."""
        assert self.running
        self.percent = percent
        if self.copies_disks:
            self.destination.disks.fill(self.uuid, percent)

    def switch_to_postcopy(self):
        """The guest runs at the destination and still needs the source."""
        assert self.running
        self.postcopy = True
        self._domain.state_and_reason = (api.PAUSED, api.PAUSED_POSTCOPY)
        self._arriving.state_and_reason = (api.RUNNING, api.RUNNING_POSTCOPY)

    def fail_postcopy(self, keeps_job=True):
        """Each side goes without the pages that the other one has.

        :param keeps_job: libvirt keeps it from 8.5 on, to recover it
        """
        assert self.postcopy
        self._domain.state_and_reason = (
            api.PAUSED, api.PAUSED_POSTCOPY_FAILED)
        self._arriving.state_and_reason = (
            api.RUNNING, api.RUNNING_POSTCOPY_FAILED)
        if not keeps_job:
            self._end('failed')

    def complete(self):
        """Switch over: the guest runs at the destination alone."""
        self.copied(100)
        self._domain.state_and_reason = (api.PAUSED, api.PAUSED_MIGRATION)
        self._arriving.state_and_reason = (
            (api.PAUSED, api.PAUSED_USER) if self._paused_by_user else
            (api.RUNNING, api.RUNNING_MIGRATED))
        self._arriving.persistent = bool(
            self._flags & api.MIGRATE_PERSIST_DEST)
        self._domain.state_and_reason = (api.SHUTOFF, api.SHUTOFF_MIGRATED)
        self._end('completed')
        if self._flags & api.MIGRATE_UNDEFINE_SOURCE:
            self.source.forget(self._domain)

    def cancel(self):
        """End on request: the guest goes on running at the source."""
        assert self.running and not self.postcopy
        self._end('cancelled')
        self.destination.forget(self._arriving)
        self._resume()

    def fail(self):
        """End in an error of QEMU or of the network."""
        assert self.running and not self.postcopy
        self._end('failed')
        self.destination.forget(self._arriving)
        self._resume()

    def _resume(self):
        # It resumes a guest that its user had paused, too.
        if not self._domain.running:
            self._domain.state_and_reason = (
                api.RUNNING, api.RUNNING_MIGRATION_CANCELED)

    def qemu_died(self, domain):
        """The QEMU of one side is gone."""
        self._end('failed')
        if domain is self._arriving:
            if not self.postcopy:
                self._resume()
        else:
            self.destination.forget(self._arriving)

    def _end(self, outcome):
        self.outcome = outcome
        self._domain.outgoing = None
        self._arriving.incoming = None
