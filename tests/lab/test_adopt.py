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

"""nova-compute dies in mid migration, and the next one goes on with it."""

import signal

from tests.lab import base
from tests.lab import migration
from tests.lab import variants

#: What an aborted migration is called: Nova's monitor cannot always tell it
#: from one that failed.
ENDED = ('cancelled', 'failed', 'error')


class GuardedTestCase(migration.MigrationTestCase):
    """With ``on_restart = adopt``."""

    options = dict(base.OPTIONS, migration_guard=dict(
        base.OPTIONS['migration_guard'], on_restart='adopt'))

    def _copy(self, percent):
        """Let so much of the disk be copied."""
        self.lab.throttle(self.server, variants.FAST)
        self.lab.wait_for_copy(self.server, 'host-a', percent)
        self.lab.throttle(self.server, self.lab.parts.settings.bandwidth)

    def _restart(self, with_signal=signal.SIGKILL):
        self.lab.kill_compute('host-a', with_signal)
        self.lab.start_compute('host-a')
        state = self.state('after the restart')
        self.must_be_copied_by_libvirt(state)
        self.assertEqual(('active', 'migrating', 'host-a'), state.nova, state)
        self.assertEqual([('host-b', 'running')], state.statuses, state)

    def _must_complete(self):
        self.assertEqual('completed', self.lab.finish_migration(self.server))
        self.must_have_arrived()

    def _check(self, *percents):
        self.begin()
        for percent in percents:
            self._copy(percent)
            self._restart()
        self._must_complete()

    def test_killed_at_10_percent(self):
        self._check(10)

    def test_killed_at_50_percent(self):
        self._check(50)

    def test_killed_at_90_percent(self):
        self._check(90)
        self.must_migrate_to('host-c')

    def test_killed_three_times(self):
        self._check(10, 40, 70)

    def test_terminated(self):
        self.begin()
        self._restart(signal.SIGTERM)
        self._must_complete()

    def test_aborted_through_the_api(self):
        self.begin()
        self._restart()
        self.lab.abort_migration(self.server)
        self.wait_until_settled()
        state = self.must_be_whole_on('host-a', 'aborted')
        (host, status), = state.statuses
        self.assertIn(status, ENDED)
        self.must_not_have_lost_writes(self.before, state, 'host-a')
        self.must_migrate_to('host-c')
