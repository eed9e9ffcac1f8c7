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

"""What an operator's tools hear of a settlement."""

import os
import pathlib

from tests.functional import migration_job
from tests.functional import releases
from tests.functional import settlement


class Signals(settlement.SettlementTestCase):
    """Nova's notifications and the numbers, of a rollback and a finish."""

    GUARD = True

    def setUp(self):
        super(Signals, self).setUp()
        self.flags(notification_format='both', group='notifications')
        self.path = pathlib.Path(self.journals, 'guard.prom')
        self.flags(metrics_file=str(self.path), group='migration_guard')

    def _start_hosts(self):
        releases.keep_notifications(self)
        super(Signals, self)._start_hosts()

    def must_be_notified(self, legacy, versioned):
        heard = releases.notifications(self)
        for name in legacy:
            self.assertIn('compute.instance.' + name, heard[0])
        for name in versioned:
            self.assertIn('instance.' + name, heard[1])

    def number(self, line):
        """What the file says now."""
        return sum(float(text.split()[-1])
                   for text in self.path.read_text().splitlines()
                   if text.startswith('nova_migration_guard_' + line))

    def must_have_run(self, action):
        self.assertIn(action, [
            found['action'] for found in
            self.api.get_instance_actions(self.server['id'])])

    def test_aborted_and_rolled_back(self):
        before = 0
        self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        hypervisor = self.hypervisor('host-a')
        hypervisor.abort_is_ignored()
        self.start_compute('host-a')
        self.assertIn(self.server['id'], self.held('host-a'))
        self.assertEqual(1, self.number('held '))
        self.assertLess(before, self.number('abort_timeouts_total'))
        self.assertIn('its migration job is still there', self._reported())
        hypervisor.abort = hypervisor.abort_works
        before = self._settled('roll_back')
        self.settle('host-a')
        self.must_be_as_before()
        self.assertEqual(0, self.number('held '))
        self.assertEqual(before + 1, self._settled('roll_back'))
        self.must_be_notified(
            ['live.migration.abort.start', 'live.migration.abort.end',
             'live_migration._rollback.start', 'live_migration._rollback.end'],
            ['live_migration_abort.start', 'live_migration_abort.end',
             'live_migration_rollback.start', 'live_migration_rollback.end'])
        self.must_have_run('migration_guard_roll_back')
        self.assertEqual(
            0o644, os.stat(str(self.path)).st_mode & 0o777)

    @staticmethod
    def _reported():
        """The section of nova-compute's guru meditation report."""
        from nova_migration_guard import gmr
        section = gmr.section()
        section.set_current_view_type('text')
        return str(section)

    def _settled(self, verdict):
        return self.number('settled_total{verdict="%s"}' % verdict)

    def test_finished(self):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        migration_job.MigrationJob.complete(job)
        self.start_compute('host-a')
        before = self._settled('finish')
        self.settle('host-a')
        self.must_be_on('host-b')
        self.assertEqual(before + 1, self._settled('finish'))
        self.must_be_notified(
            ['live_migration._post.start', 'live_migration._post.end',
             'live_migration.post.dest.start',
             'live_migration.post.dest.end'],
            ['live_migration_post.start', 'live_migration_post.end',
             'live_migration_post_dest.start',
             'live_migration_post_dest.end'])
        self.must_have_run('migration_guard_finish')
