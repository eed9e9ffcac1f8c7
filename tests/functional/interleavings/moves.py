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

"""The moves: real ones, each of one guest that holds something."""

import time

import fixtures

from nova.virt.libvirt import driver

from tests.functional import releases

A = 'host-a'
B = 'host-b'

#: Seconds without a step after which a move that looks done has ended.
QUIET = 0.6

#: What a guest can have; a move takes a guest with some of these.
PORT, ALIAS, CPU = 'SR-IOV port', 'PCI alias', 'pinned CPU'


class Move(object):
    """One kind of move.

    :param cloud: the :class:`~.cloud.CloudTestCase` with hosts A and B
    """

    #: what the guest has
    GUEST = (PORT, ALIAS, CPU)
    #: the hosts whose audits are interleaved with it
    HOSTS = (A, B)
    #: where the guest holds something when it has ended
    KEPT = (B,)

    def __init__(self, cloud):
        self.cloud = cloud
        self.server = None
        self._port = None

    @property
    def name(self):
        return self.NAME

    @staticmethod
    def exists():
        """Whether this release has such a move."""
        return True

    @staticmethod
    def violates_on_stock():
        """Whether stock Nova is known to let an audit break it."""
        return False

    def set_up(self):
        """Once, before the first guest."""

    def prepare(self):
        """Make a guest, and bring it to where the move begins."""
        networks = 'none'
        if PORT in self.GUEST:
            # What a port has kept of its last host, by release, is not to
            # bear on the next guest.
            self._port = self.cloud.create_sriov_port(1)
            networks = [{'port': self._port}]
        self.server = self.cloud.boot(A, flavor=self.cloud.flavor_of(
            self.GUEST), networks=networks)

    def act(self):
        """Ask for the move, and drive what is outside Nova."""
        raise NotImplementedError

    def has_ended(self):
        """Whether Nova's records say so."""
        raise NotImplementedError

    def has_failed(self):
        """Whether it never will. An audit may bring that about."""
        return self.cloud.nova_says(self.server).vm_state == 'error'

    def run(self):
        """The whole move.

        :returns: whether it came to its end
        """
        steps = self.cloud.steps
        self.act()
        self.cloud.wait_until(
            lambda: (self.has_ended() or self.has_failed()) and
            time.monotonic() - steps.last > QUIET,
            lambda: 'the end of the %s: %s %s' % (
                self.name, self.cloud.nova_says(self.server),
                self.cloud.migration_statuses(self.server)))
        return not self.has_failed()

    def clean_up(self):
        """Nothing is left of the guest."""
        self.cloud.delete(self.server)
        if self._port:
            self.cloud.neutron.delete_port(self._port)

    def _is(self, vm_state, host, status=None):
        return self.cloud.nova_says(self.server) == (
            vm_state, None, host) and (
                status is None or
                status == self.cloud.migrations(self.server)[-1].status)


class Evacuation(Move):
    NAME = 'evacuation'
    HOSTS = (B,)

    @staticmethod
    def violates_on_stock():
        return releases.evacuation_races_audit()

    def prepare(self):
        super(Evacuation, self).prepare()
        self.cloud.crash_host(A)
        self.cloud.force_down(A)

    def act(self):
        self.cloud.evacuate(self.server, B)

    def has_ended(self):
        return self._is('active', B, 'done')

    def clean_up(self):
        self.cloud.revive_host(A)
        self.cloud.force_up(A)
        super(Evacuation, self).clean_up()


class LiveMigration(Move):
    NAME = 'live migration, block'
    GUEST = (PORT,)
    SHARED = False

    @staticmethod
    def violates_on_stock():
        return True

    def set_up(self):
        if not self.SHARED:
            return
        for name in ('_is_shared_block_storage',
                     '_check_shared_storage_test_file'):
            # over the mocks of the cloud, which cannot be specified again
            self.cloud.useFixture(fixtures.MockPatchObject(
                driver.LibvirtDriver, name, lambda *args, **kwargs: True))

    def act(self):
        self.cloud.live_migrate(self.server, B)
        uuid = self.server['id']
        self.cloud.wait_until(
            lambda: self.cloud.world.running_job(uuid) or self.has_failed(),
            'libvirt migrates')
        job = self.cloud.world.running_job(uuid)
        if job is not None:
            self._go_on(job)

    def _go_on(self, job):
        job.complete()

    def has_ended(self):
        return self._is('active', B, 'completed')


class LiveMigrationShared(LiveMigration):
    NAME = 'live migration, shared'
    SHARED = True


class LiveMigrationAlias(LiveMigration):
    NAME = 'live migration, PCI alias'
    GUEST = (ALIAS,)

    @staticmethod
    def exists():
        return releases.devices_by_alias_migrate_live()


class LiveMigrationPinned(LiveMigration):
    NAME = 'live migration, pinned CPU'
    GUEST = (PORT, CPU)


class LiveMigrationFails(LiveMigration):
    NAME = 'live migration that fails'
    GUEST = (PORT, CPU)
    KEPT = (A,)

    @staticmethod
    def violates_on_stock():
        return False

    def _go_on(self, job):
        job.fail()

    def has_ended(self):
        # 34 leaves the instance in ERROR when the job has ended by an error
        says = self.cloud.nova_says(self.server)
        return says.task_state is None and says.host == A and (
            self.cloud.migrations(self.server)[-1].status in (
                'error', 'failed'))

    def has_failed(self):
        return False


class ColdMigration(Move):
    NAME = 'cold migration'
    KEPT = (A, B)

    def act(self):
        self.cloud.act(self.server, 'migrate')

    def has_ended(self):
        return self._is('resized', B, 'finished')


class Resize(ColdMigration):
    NAME = 'resize'

    def act(self):
        self.cloud.act(self.server, 'resize', {
            'flavorRef': self.cloud.flavor_of(self.GUEST, ram=1024)})


class _Resized(Move):
    """A move of a guest that was migrated or resized, A to B."""

    def move(self):
        self.cloud.act(self.server, 'migrate')

    def prepare(self):
        super(_Resized, self).prepare()
        self.move()
        self.cloud.wait_until(lambda: self._is('resized', B, 'finished'),
                              lambda: 'the guest is migrated: %s' % (
                                  self.cloud.nova_says(self.server),))


class Confirm(_Resized):
    NAME = 'confirm'

    def act(self):
        self.cloud.act(self.server, 'confirmResize')

    def has_ended(self):
        return self._is('active', B, 'confirmed')


class Revert(_Resized):
    NAME = 'revert'
    KEPT = (A,)

    @staticmethod
    def violates_on_stock():
        return True

    def act(self):
        self.cloud.act(self.server, 'revertResize')

    def has_ended(self):
        return self._is('active', A, 'reverted')


class Unshelve(Move):
    NAME = 'unshelve'

    @staticmethod
    def violates_on_stock():
        return releases.unshelved_is_not_counted()

    def prepare(self):
        super(Unshelve, self).prepare()
        self.cloud.act(self.server, 'shelve')
        self.cloud.wait_until(
            lambda: self._is('shelved_offloaded', None),
            lambda: 'the guest is shelved: %s' % (
                self.cloud.nova_says(self.server),))
        self.cloud.enable_service(A, False)

    def act(self):
        self.cloud.act(self.server, 'unshelve')

    def has_ended(self):
        return self._is('active', B)

    def clean_up(self):
        self.cloud.enable_service(A, True)
        super(Unshelve, self).clean_up()


class CrossCellResize(Resize):
    NAME = 'cross-cell resize'
    # With a device, of either kind, it fails in the other cell: Nova has no
    # migration context there.
    GUEST = (CPU,)

    @staticmethod
    def exists():
        return releases.resizes_across_cells()


class _AcrossCells(object):
    """Of a guest that was resized, to a host in another cell."""

    GUEST = CrossCellResize.GUEST
    exists = CrossCellResize.exists

    def move(self):
        self.cloud.act(self.server, 'resize', {
            'flavorRef': self.cloud.flavor_of(self.GUEST, ram=1024)})


class CrossCellConfirm(_AcrossCells, Confirm):
    NAME = 'cross-cell confirm'


class CrossCellRevert(_AcrossCells, Revert):
    NAME = 'cross-cell revert'

    @staticmethod
    def violates_on_stock():
        return False


#: Those between two cells, which need a test case of their own.
CROSS_CELL_MOVES = [move for move in (
    CrossCellResize, CrossCellConfirm, CrossCellRevert) if move.exists()]

MOVES = [move for move in (
    Evacuation, LiveMigration, LiveMigrationShared, LiveMigrationAlias,
    LiveMigrationPinned, LiveMigrationFails, ColdMigration, Resize, Confirm,
    Revert, Unshelve) if move.exists()]
