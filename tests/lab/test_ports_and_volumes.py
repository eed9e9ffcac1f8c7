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

"""What a migration takes besides disks, and who gives it back.

nova-compute dies in mid block migration A -> B of a guest with a port and a
volume, and starts again. Neutron, Cinder and Placement are real.
"""

import signal

from tests.lab import base
from tests.lab import migration


class InterruptedMigration(migration.MigrationTestCase):
    """A guest on A, with a port and a volume, in mid migration to B."""

    full = True

    # ---- steps

    def restart(self, signum=signal.SIGKILL):
        """End nova-compute on A, and start it again."""
        self.lab.kill_compute('host-a', signum)
        self.must_be_copied_by_libvirt(self.state('nova-compute has ended'))
        self.lab.start_compute('host-a')
        self.wait_until_settled()

    def wait_for_the_end_of_the_job(self):
        """An abort takes some time, and stock Nova does not wait for it."""
        source, destination = (self.lab.hosts[name]
                               for name in ('host-a', 'host-b'))
        self.lab.wait_until(
            lambda: not destination.emulators() and not
            source.domains()[self.server].get('job'), self.server,
            'has no job')

    def holders(self, state):
        """{consumer: hosts of which it holds something}, by Placement."""
        return {consumer: sorted(held)
                for consumer, held in state.allocations.items()}

    # ---- what must be true

    def must_have_taken_everything_twice(self, state):
        """In mid migration there is one of each for either host."""
        port, = state.ports
        self.assertEqual({'host-a': 'ACTIVE', 'host-b': 'INACTIVE'},
                         port.bindings, state)
        self.assertEqual([('host-a', 'attached', False),
                          ('host-b', 'attached', True)],
                         self.attachments_of(state), state)
        self.assertEqual({'instance': ['host-b'],
                          'migration %d' % state.migrations[-1].id:
                          ['host-a']}, self.holders(state), state)


class GuardedTestCase(InterruptedMigration):
    """With the guard."""

    guard = True

    @base.in_ci(base.FULL)
    def test_killed(self):
        """Nothing is left on B, and B is as good a destination as before."""
        self.begin()
        self.must_have_taken_everything_twice(self.before)
        self.restart()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-b')

    def test_terminated(self):
        self.begin()
        self.restart(signal.SIGTERM)
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-b')

    @base.in_ci(base.FULL)
    def test_killed_then_to_another_host(self):
        self.begin()
        self.restart()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-c')


class StockTestCase(InterruptedMigration):
    """Without the guard, on releases that abort the job at start-up."""

    guard = False

    @base.in_ci(base.FULL)
    def test_killed(self):
        """All that B was given stays, and stands in the way of the next."""
        self.begin()
        self.must_have_taken_everything_twice(self.before)
        self.restart()
        self.wait_for_the_end_of_the_job()
        state = self.state('after the restart')
        # the job is aborted, and nothing else is done about it
        self.assertEqual([('host-b', 'error')], state.statuses, state)
        self.must_be_on_alone('host-a', state)
        self.must_have_taken_everything_twice(state)
        port, = state.ports
        self.assertEqual({'host-a': 'host-b'}, port.migrating_to, state)
        self.assertIn('disk', state.hosts['host-b'].files, state)
        self.assertEqual(state.hosts['host-a'].devices,
                         state.hosts['host-b'].devices, state)

        self.lab.live_migrate(self.server, 'host-b')
        self.assertEqual('error', self.lab.finish_migration(self.server))
        self.lab.wait_until(
            lambda: self.lab.nova_says(self.server)[1] is None, self.server,
            'is idle')
        state = self.state('after the request for host-b')
        self.assertEqual(('active', None, 'host-a'), state.nova, state)
        self.must_be_on_alone('host-a', state)
        # it runs, and holds nothing
        self.assertNotIn('instance', state.allocations, state)
