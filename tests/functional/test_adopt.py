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

"""A restart of nova-compute need not cost a live migration."""

from tests.functional import properties
from tests.functional import releases
from tests.functional import settlement

#: What Nova's monitor calls a migration whose guest has stayed. An abort is no
#: other: libvirt names no job any more when it has ended.
FAILED = 'failed' if releases.VERSION >= (22,) else 'error'

LOST = 'the restart costs the migration'
IDLE_OVER_JOB = 'idle over a running job'
DESTROYED = 'A PART OF THE GUEST IS DESTROYED'


@properties.twice
class Adopt(settlement.SettlementTestCase):
    """nova-compute on A dies in mid copy, and the next one goes on."""

    def setUp(self):
        super(Adopt, self).setUp()
        if self.guard:
            self.flags(on_restart='adopt', group='migration_guard')
        self.job = self.begin_migration(self.server, 'host-b')

    @property
    def _migration(self):
        return self.migrations(self.server)[-1]

    def _restart(self):
        self.restart_compute('host-a')
        self.must(
            self.job.running and self._migration.status == 'running' and
            self.nova_says(self.server) == ('active', 'migrating', 'host-a'),
            LOST, self.where(self.server))
        self.assertEqual({}, self.held('host-a'))
        self.wait_until(
            lambda: self.server['id'] in
            self.processes['host-a'].manager.driver.active_migrations,
            'the migration is adopted')

    def _ask(self, method, *args):
        """Make a request about the migration that runs."""
        getattr(self.api, 'api_' + method)(
            '/servers/%s/migrations/%d%s' % (
                self.server['id'], self._migration.id,
                '/action' if args else ''), *args)

    def _must_show(self, remaining):
        self.wait_until(
            lambda: self._migration.memory_remaining == remaining,
            'the progress is in the record')

    def _must_end(self, status):
        self.wait_until(
            lambda: self._migration.status == status and
            not self.nova_says(self.server).task_state and
            not self.journaled('host-a'),
            lambda: '%s: %s' % (status, self.footprint(self.server)))
        self.assertEqual({}, self.held('host-a'))

    @properties.held(stock=LOST)
    def test_completes_after_three_restarts(self):
        for percent in (60, 80, 95):
            self.job.copied(percent)
            self._restart()
            self._must_show(100 - percent)
        self.assertTrue(self.refused(self.live_migrate, self.server,
                                     'host-c'))
        self.job.complete()
        self._must_end('completed')
        self.must_be_on('host-b')
        self.must_migrate_to('host-c')

    @properties.held(stock=LOST)
    def test_aborted_through_the_api(self):
        self._restart()
        self._ask('delete')
        self._must_end(FAILED)
        self.assertEqual('cancelled', self.job.outcome)
        self.must_be_as_before()
        self.must_live_on()

    @properties.held(stock=LOST)
    def test_forced_and_then_failed(self):
        """A restart lies between the pause that is to help, and its end."""
        self._restart()
        self._ask('post', {'force_complete': None})
        self.wait_until(
            lambda: self.where(self.server)['host-a'] == 'paused',
            'it is forced to complete')
        self._restart()
        self.job.fail()
        self._must_end(FAILED)
        self.must_be_as_before()

    @properties.guarded
    def test_not_without_the_journal(self):
        self.kill_compute('host-a')
        self.lose_journal('host-a')
        self.start_compute('host-a')
        self.assertEqual('cancelled', self.job.outcome)


@properties.twice
class PostCopy(settlement.SettlementTestCase):
    """The guest runs on B, and needs what A still has of it."""

    def setUp(self):
        super(PostCopy, self).setUp()
        self.job = self.begin_migration(self.server, 'host-b')

    def _switch_and_restart(self, fails=False):
        self.kill_compute('host-a')
        # before Nova has written down that it asked for it
        self.job.switch_to_postcopy()
        if fails:
            self.job.fail_postcopy()
        self.start_compute('host-a')
        self.must(self.job.running and
                  self.nova_says(self.server).task_state == 'migrating',
                  IDLE_OVER_JOB, self.where(self.server))

    def _must_complete(self):
        self.wait_until(
            lambda: self.migrations(self.server)[-1].status ==
            'running (post-copy)', 'it is adopted')
        self.job.complete()
        self.wait_until(
            lambda: self.migrations(self.server)[-1].status == 'completed' and
            not self.journaled('host-a'), 'it is completed')
        self.must_be_on('host-b')

    def _must_be_kept(self):
        self.assertEqual({'host-a': 'paused', 'host-b': 'running'},
                         self.where(self.server))
        shown = self.wait_for_server(
            self.server, lambda server: server['status'] == 'ERROR')
        self.assertIn('VIR_MIGRATE_POSTCOPY_RESUME',
                      shown['fault']['message'])
        # From 33.0 on the end of the failed job reaches Nova after the hold,
        # and makes the instance idle until the settler's next attempt.
        self.wait_until(
            lambda: self.guard_of('host-a').settle_held() or self.refused(
                self.act, self.server, 'reboot', {'type': 'HARD'}),
            'a reboot is refused')

    @properties.held(stock=IDLE_OVER_JOB)
    def test_is_seen_through(self):
        self._switch_and_restart()
        self._must_complete()

    @properties.held(stock=IDLE_OVER_JOB)
    def test_failed_is_held_until_it_is_recovered(self):
        self._switch_and_restart(fails=True)
        self.guard_of('host-a').settle_held()
        self._must_be_kept()
        self.job.switch_to_postcopy()
        self.settle('host-a')
        self._must_complete()

    @properties.held(stock=DESTROYED)
    def test_failed_is_not_rolled_back(self):
        """nova-compute lives, and libvirt keeps no job to recover."""
        self.job.switch_to_postcopy()
        self.job.fail_postcopy(keeps_job=False)
        self.wait_until(
            lambda: not self.nova_says(self.server).task_state or
            self.guard and self.held('host-a'), 'the monitor sees it')
        if not self.guard:
            # what Nova asks of B comes by a cast
            self.wait_until(
                lambda: 'host-b' not in self.where(self.server), 'it comes')
        self.must('host-b' in self.where(self.server), DESTROYED,
                  self.where(self.server))
        self.guard_of('host-a').settle_held()
        self._must_be_kept()
