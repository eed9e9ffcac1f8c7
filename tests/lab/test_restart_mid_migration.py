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

"""nova-compute dies in mid block migration and starts again (bug 1753676)."""

import signal
import time

from tests.lab import base
from tests.lab import migration

#: From here on nova-compute aborts a running migration when it starts.
ABORTS_AT_START = (20, 2)
#: Seconds that nova-compute may take to start on a machine that is busy,
#: beside what the guard may add.
START = 120


class GuardedTestCase(migration.MigrationTestCase):
    """With the guard."""

    guard = True

    @base.in_ci(base.LIGHT)
    def test_killed(self):
        self.begin()
        self.lab.kill_compute('host-a')
        self.must_be_copied_by_libvirt(self.state('nova-compute is dead'))
        self.lab.start_compute('host-a')
        self.wait_until_settled()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-c')

    def test_terminated(self):
        self.begin()
        self.lab.kill_compute('host-a', signal.SIGTERM)
        self.must_be_copied_by_libvirt(self.state('nova-compute has ended'))
        self.lab.start_compute('host-a')
        self.wait_until_settled()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-c')

    def test_killed_with_libvirtd(self):
        self.begin()
        self.lab.kill_compute('host-a')
        self.lab.stop_libvirtd('host-a')
        self.lab.start_libvirtd('host-a')
        self.lab.start_compute('host-a')
        self.wait_until_settled()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-c')

    def test_killed_while_qemu_is_frozen(self):
        """libvirt's first question to such a QEMU hangs without limit.

        nova-compute is killed a second time while it holds the instance.
        """
        self.begin()
        self.lab.kill_compute('host-a')
        self.lab.freeze_qemu(self.server, 'host-a')
        for attempt in ('first', 'second'):
            begun = time.monotonic()
            self.lab.start_compute('host-a')
            self.assertLess(
                time.monotonic() - begun,
                START + self.options['migration_guard']['startup_timeout'])
            self.must_be_held(self.state('%s start, frozen' % attempt))
            self.lab.kill_compute('host-a')
        self.lab.start_compute('host-a')
        self.lab.thaw_qemu(self.server, 'host-a')
        self.wait_until_settled()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-c')

    def test_killed_while_the_network_is_cut(self):
        """Nothing is aborted until B can be told: the guest goes on."""
        self.begin()
        self.lab.kill_compute('host-a')
        self.lab.cut_network('host-a', 'host-b')
        self.lab.start_compute('host-a')
        state = self.state('started, network cut')
        self.assertEqual(['host-a'], state.running_on)
        self.must_be_held(state)
        self.lab.heal_network('host-a', 'host-b')
        self.wait_until_settled()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-c')

    def test_killed_with_libvirtd_of_the_destination(self):
        self.begin()
        self.lab.kill_compute('host-a')
        self.lab.stop_libvirtd('host-b')
        self.lab.start_compute('host-a')
        # it is not certain that B has no guest until B's libvirt says so
        self.must_be_held(self.state('started, no libvirt on host-b'))
        self.lab.start_libvirtd('host-b')
        self.wait_until_settled()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-c')

    def test_killed_on_both_hosts(self):
        self.begin()
        self.lab.kill_compute('host-a')
        self.lab.kill_compute('host-b')
        self.lab.start_compute('host-a')
        self.must_be_held(self.state('started, no nova-compute on host-b'))
        self.lab.start_compute('host-b')
        self.wait_until_settled()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-c')


class StockTestCase(migration.MigrationTestCase):
    """Without the guard, where Nova has no fix of its own."""

    guard = False

    def setUp(self):
        # before nova-compute is started again without the guard
        if base.shared_lab().parts.settings.version >= ABORTS_AT_START:
            self.skipTest('from 20.2.0 nova-compute aborts a running '
                          'migration when it starts')
        super(StockTestCase, self).setUp()

    @base.in_ci(base.LIGHT)
    def test_killed(self):
        """The report, step by step, to its end state."""
        self.begin()
        self.lab.kill_compute('host-a')
        self.lab.start_compute('host-a')
        state = self.state('after the restart')
        # the root of it: idle, while libvirt copies on
        self.assertEqual(('active', None, 'host-a'), state.nova, state)
        self.must_be_copied_by_libvirt(state)

        self.lab.live_migrate(self.server, 'host-c')
        self.lab.wait_until(
            lambda: self.lab.migrations(self.server)[-1].status == 'running',
            self.server, 'migrates to host-c')
        self.must_be_copied_by_libvirt(self.state('second migration'))

        # the stream to B ends, and passes for the one to C
        self.lab.throttle(self.server, 0)
        self.lab.wait_until(
            lambda: self.lab.nova_says(self.server)[0] == 'error',
            self.server, 'is in ERROR')
        # post-migration goes on: it cleans up where the guest has left
        self.lab.wait_until(
            lambda: self.lab.hosts['host-a'].files(self.server) is None,
            self.server, 'has no disk on host-a')
        state = self.state('end')
        self.assertEqual('host-c', state.server.host, state)
        self.assertEqual(['host-b'], state.running_on, state)
        self.assertEqual(['running'], state.hosts['host-b'].emulators)
        # the only complete disk is where Nova does not look for it
        self.assertIsNone(state.hosts['host-a'].files, state)
        self.assertGreaterEqual(state.hosts['host-b'].disk,
                                self.before.hosts['host-a'].disk)
