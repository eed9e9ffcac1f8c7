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

"""nova-compute dies in mid block migration and starts again (bug 1753676)."""

from tests.functional import cloud
from tests.functional import properties

IDLE_OVER_JOB = 'idle over a running job'
LOST_DISK = 'LOST DISK'
SECOND_ACCEPTED = 'a second migration is accepted over a running job'
TWO_QEMUS = 'TWO QEMUS'

#: What a release does differently, with the reason.
ABORTS_AT_START = [
    ((20, 2), properties.HOLDS,
     'from 20.2.0 nova-compute aborts a running migration when it starts')]


@properties.twice
class RestartInLiveMigration(cloud.CloudTestCase):
    """The migration A -> B, and the request for A -> C that follows."""

    def setUp(self):
        super(RestartInLiveMigration, self).setUp()
        self.start_hosts('host-a', 'host-b', 'host-c')
        self.server = self.boot('host-a')

    def _restart(self):
        """nova-compute on A dies in mid copy, and starts again."""
        self.job = self.begin_migration(self.server, 'host-b')
        self.restart_compute('host-a')

    def _seen(self):
        return '%s, migrations %s, guest %s, disks %s' % (
            self.nova_says(self.server),
            self.migration_statuses(self.server), self.where(self.server),
            self.disks(self.server))

    def _must_not_be_idle_over_the_job(self):
        self.must(not self.job.running or
                  self.nova_says(self.server).task_state is not None,
                  IDLE_OVER_JOB, self._seen())

    def _must_be_held(self):
        """Nova says MIGRATING, and refuses what users ask for."""
        self._must_not_be_idle_over_the_job()
        self.assertEqual(('active', 'migrating', 'host-a'),
                         self.nova_says(self.server))
        self.assertIn(self.server['id'], self.guard_of('host-a').held)
        self.assertTrue(self.refused(self.live_migrate, self.server,
                                     'host-c'))

    def _must_be_idle_on_a(self):
        self.assertEqual(('active', None, 'host-a'),
                         self.nova_says(self.server), self._seen())
        self.assertEqual({'host-a': 'running'}, self.where(self.server))
        self.assertEqual('complete', self.disks(self.server)['host-a'])
        self.assertNotIn(self.server['id'], self.world.ran_twice)
        if self.guard:
            self.assertEqual([('host-b', 'cancelled')],
                             self.migration_statuses(self.server))
            self.assertEqual({}, self.guard_of('host-a').held)

    def _must_migrate_to_c(self):
        job = self.begin_migration(self.server, 'host-c')
        job.complete()
        self.wait_until(lambda: self.nova_says(self.server) ==
                        ('active', None, 'host-c'), self._seen)
        self.wait_until(lambda: self.migrations(self.server)[-1].status ==
                        'completed', self._seen)
        self.assertEqual({'host-c': 'running'}, self.where(self.server))
        self.assertEqual('complete', self.disks(self.server)['host-c'])
        self.assertNotIn(self.server['id'], self.world.ran_twice)

    def _migrate_to_c_if_it_is_accepted(self):
        """The request of the report; on stock it goes on until A says no."""
        if self.refused(self.live_migrate, self.server, 'host-c'):
            return
        self.wait_until(
            lambda: self.server['id'] in self.hypervisor('host-a').refused,
            'libvirt refuses the second job')

    # ---- the abort works

    @properties.held(stock=IDLE_OVER_JOB, since=ABORTS_AT_START)
    def test_abort_works(self):
        self._restart()
        self._must_not_be_idle_over_the_job()
        self.assertEqual('cancelled', self.job.outcome)
        self._must_be_idle_on_a()
        self._must_migrate_to_c()

    # ---- the abort does not, and the job is cancelled late

    def _test_cancelled_late(self):
        self._restart()
        self._must_be_held()
        self.job.cancel()
        self.settle('host-a')
        self._must_be_idle_on_a()
        self._must_migrate_to_c()

    @properties.held(stock=IDLE_OVER_JOB)
    def test_abort_raises(self):
        self.hypervisor('host-a').abort_is_refused()
        self._test_cancelled_late()

    @properties.held(stock=IDLE_OVER_JOB)
    def test_abort_raises_that_no_job_is_active(self):
        # 55 has three meanings; the state decides, not the code
        self.hypervisor('host-a').abort_is_refused(
            55, 'Requested operation is not valid: no job is active')
        self._test_cancelled_late()

    @properties.held(stock=IDLE_OVER_JOB)
    def test_abort_is_ignored(self):
        self.hypervisor('host-a').abort_is_ignored()
        self._test_cancelled_late()

    @properties.held(stock=IDLE_OVER_JOB)
    def test_abort_lingers(self):
        self.hypervisor('host-a').abort_lingers()
        self._test_cancelled_late()

    @properties.guarded
    def test_the_settler_aborts_again(self):
        self.hypervisor('host-a').abort_is_refused()
        self._restart()
        self._must_be_held()
        self.hypervisor('host-a').abort = self.hypervisor(
            'host-a').abort_works
        self.settle('host-a')
        self.assertEqual('cancelled', self.job.outcome)
        self._must_be_idle_on_a()

    @properties.guarded
    def test_held_over_another_restart(self):
        self.hypervisor('host-a').abort_is_refused()
        self._restart()
        self._must_be_held()
        self.restart_compute('host-a')
        self._must_be_held()

    # ---- the abort does not, and the job completes

    @properties.held(stock=SECOND_ACCEPTED)
    def test_second_request_is_refused(self):
        self.hypervisor('host-a').abort_is_ignored()
        self._restart()
        self.must(self.refused(self.live_migrate, self.server, 'host-c'),
                  SECOND_ACCEPTED, self._seen())
        self.assertTrue(self.job.running)

    @properties.held(stock=LOST_DISK)
    def test_disk_survives(self):
        """The report's story, to its end."""
        self.hypervisor('host-a').abort_is_ignored()
        self._restart()
        self._migrate_to_c_if_it_is_accepted()
        self.job.complete()
        if self.guard:
            self.settle('host-a')
            self.assertEqual(('active', None, 'host-b'),
                             self.nova_says(self.server))
        else:
            self.wait_until(
                lambda: not self.nova_says(self.server).task_state and
                self.nova_says(self.server).host != 'host-a' and
                'host-a' not in self.disks(self.server), self._seen)
        self.assertEqual({'host-b': 'running'}, self.where(self.server))
        self.must(self.disks(self.server).get(
            self.nova_says(self.server).host) == 'complete',
            LOST_DISK, self._seen())
        self.assertEqual('complete', self.disks(self.server)['host-b'])

    @properties.held(stock=TWO_QEMUS)
    def test_guest_is_not_started_again(self):
        """The job completes after all, and the host's guests are resumed."""
        self.hypervisor('host-a').abort_is_ignored()
        self.flags(resume_guests_state_on_host_boot=True)
        self._restart()
        self.job.complete()
        self.restart_compute('host-a')
        self.must(self.server['id'] not in self.world.ran_twice, TWO_QEMUS,
                  self._seen())
        self.assertEqual({'host-b': 'running'}, self.where(self.server))
        if self.guard:
            self.settle('host-a')
            self.assertEqual(('active', None, 'host-b'),
                             self.nova_says(self.server))
