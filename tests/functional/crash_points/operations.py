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

"""The operations that nova-compute is killed in."""

import fixtures

from nova.virt.libvirt import driver

from tests.functional import releases

#: What libvirt does with its job while nova-compute is away.
FINISHES = 'finishes'
FAILS = 'fails'
RUNS = 'runs'
#: It runs, and is faster than the abort that libvirt says yes to: 1 of 44.
OUTRUNS = 'outruns'
WORLDS = (FINISHES, FAILS, RUNS, OUTRUNS)

SOURCE = 'source'
DESTINATION = 'destination'

ENDED = ('completed', 'cancelled', 'failed', 'error')


class LiveMigration(object):
    """A live migration from A to B, with its disk, port and volume."""

    NAME = 'live-migration-block'
    SIDES = {SOURCE: 'host-a', DESTINATION: 'host-b'}

    #: Kills that lead to a settlement of each kind: (side, point, world).
    SETTLED_AFTER = (
        # undone, rolled back, finished, closed
        (SOURCE, 'journal:begin:after', FINISHES),
        (SOURCE, 'rpc:pre_live_migration:after', FINISHES),
        (SOURCE, 'libvirt:migrateToURI3:after', RUNS),
        (SOURCE, 'libvirt:migrateToURI3:after', FINISHES),
        (SOURCE, 'rpc:post_live_migration_at_destination:after', FINISHES))

    #: Whether the guard sees it through; if not, Nova is on its own.
    IS_DRIVEN = True

    #: Whether both hosts have the same instances folder.
    SHARED = False

    #: Whether the guest has a virtual function and a CPU of its own.
    DEVICES = False

    def __init__(self, test):
        self.test = test

    @staticmethod
    def set_up(test):
        """Prepare the cloud, before its hosts are started."""

    @staticmethod
    def start_hosts(test):
        test.start_hosts('host-a', 'host-b')

    def boot(self):
        """Make the server on A.

        :returns: the server as the API shows it
        """
        server = self.test.boot(
            'host-a', networks=[{'port': self.test.neutron.port_1['id']}])
        self.test.attach_volume(server)
        return server

    def begin(self):
        self.test.live_migrate(self.test.server, 'host-b')

    def job(self):
        return self.test.world.running_job(self.test.server['id'])

    def go_on(self):
        """Let libvirt go on with its job; called over and over.

        :returns: whether the operation has ended
        """
        migrations = self.test.migrations(self.test.server)
        status = migrations[-1].status if migrations else None
        if self.job() is not None and status == 'running':
            self.job_is_monitored()
        return status in ENDED

    def job_is_monitored(self):
        """nova-compute watches the job: let it come to its end."""
        self.job().complete()

    def world_goes_on(self, world):
        """nova-compute is dead: what libvirt does with a job that runs."""
        job = self.job()
        if job is None or world in (RUNS, OUTRUNS):
            return
        if world == FINISHES:
            job.complete()
        elif not job.postcopy:
            job.fail()

    def violations(self):
        """What this operation can leave behind besides: [Violation]."""
        return []

    def come_back(self):
        """The killed nova-compute runs again; what happens after that."""

    def clean_up(self):
        """The server is deleted; remove what was made for its user."""

    def unowned_job_ends(self):
        """What no one may end ends by itself."""
        job = self.job()
        if job is not None and job.postcopy:
            job.complete()


class Shared(LiveMigration):
    """Both hosts have the instances folder on one file system."""

    NAME = 'live-migration-shared'
    SHARED = True

    @staticmethod
    def start_hosts(test):
        for name in ('_is_shared_block_storage',
                     '_check_shared_storage_test_file',
                     'check_instance_shared_storage_remote'):
            # over the mocks of the cloud, which cannot be specified again
            test.useFixture(fixtures.MockPatchObject(
                driver.LibvirtDriver, name, lambda *args, **kwargs: True))
        test.start_hosts('host-a', 'host-b')
        test.hypervisor('host-b').disks = test.hypervisor('host-a').disks


class VolumeBacked(LiveMigration):
    """The guest's disk is a volume."""

    NAME = 'live-migration-volume-backed'

    @staticmethod
    def start_hosts(test):
        test.start_hosts('host-a', 'host-b')
        test.diskless = test.create_flavor(disk=0)

    def boot(self):
        server = self.test.api.post_server({'server': {
            'name': 'guest', 'host': 'host-a',
            'flavorRef': self.test.diskless,
            'networks': [{'port': self.test.neutron.port_1['id']}],
            'block_device_mapping_v2': [{
                'uuid': releases.CinderFixture.IMAGE_BACKED_VOL,
                'source_type': 'volume', 'destination_type': 'volume',
                'boot_index': 0}]}})
        return self.test.wait_for_server(
            server, lambda s: s['status'] == 'ACTIVE')


class Devices(LiveMigration):
    """The guest has a virtual function and a CPU of its own."""

    NAME = 'live-migration-sriov-pinned'
    DEVICES = True

    @staticmethod
    def set_up(test):
        test.enable_pci()
        test.flags(cpu_dedicated_set='0-1,4-5', cpu_shared_set='2-3,6-7',
                   group='compute')

    @staticmethod
    def start_hosts(test):
        for host in ('host-a', 'host-b'):
            test.start_host(host, releases.pci_devices(1, 2))
        test.pinned = test.create_flavor({'hw:cpu_policy': 'dedicated'})
        test.sriov_port = test.create_sriov_port(1)

    def boot(self):
        server = self.test.boot(
            'host-a', flavor=self.test.pinned,
            networks=[{'port': self.test.neutron.port_1['id']},
                      {'port': self.test.sriov_port}])
        self.test.attach_volume(server)
        return server


class Failure(LiveMigration):
    """The job fails."""

    NAME = 'live-migration-failure'

    def job_is_monitored(self):
        self.job().fail()


class Abort(LiveMigration):
    """A user aborts the migration."""

    NAME = 'live-migration-abort'

    def __init__(self, test):
        super(Abort, self).__init__(test)
        self._asked = False

    def job_is_monitored(self):
        if not self._asked:
            self._asked = True
            self.test.api.delete_migration(
                self.test.server['id'],
                self.test.migrations(self.test.server)[-1].id)


class AutoConverge(LiveMigration):
    """QEMU slows the guest down until it has been copied."""

    NAME = 'live-migration-auto-converge'

    @staticmethod
    def set_up(test):
        test.flags(live_migration_permit_auto_converge=True, group='libvirt')


class PostCopy(LiveMigration):
    """The guest runs at the destination before all of it is there."""

    NAME = 'live-migration-post-copy'

    @staticmethod
    def set_up(test):
        test.flags(live_migration_permit_post_copy=True, group='libvirt')

    def __init__(self, test):
        super(PostCopy, self).__init__(test)
        self._asked = False

    def job_is_monitored(self):
        if not self._asked:
            self._asked = True
            self.test.api.force_complete_migration(
                self.test.server['id'],
                self.test.migrations(self.test.server)[-1].id)

    def go_on(self):
        ended = super(PostCopy, self).go_on()
        # the monitor has seen it, and nova-compute has written it down
        if self.test.migration_statuses(self.test.server)[-1:] == [
                ('host-b', 'running (post-copy)')]:
            self.unowned_job_ends()
        return ended


OPERATIONS = {operation.NAME: operation for operation in (
    LiveMigration, Shared, VolumeBacked, Devices, Failure, Abort,
    AutoConverge, PostCopy)}
