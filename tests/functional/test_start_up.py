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

"""nova-compute starts, and what it finds is not simple."""

import time

from nova.compute import manager
from nova.virt.libvirt import driver

from tests.functional import cloud
from tests.functional import properties
from tests.functional import races

IDLE_OVER_JOB = 'idle over a running job'
JOB_GOES_ON = 'the job goes on, and nobody looks after it'
PAUSED_GUEST_RUNS = 'a guest runs that its user had paused'
TWO_QEMUS = 'TWO QEMUS'

FOREIGN = 'a3b5ba6f-8f3e-4bf8-8c4c-3b0a0e0d77aa'


class StartUpTestCase(cloud.CloudTestCase):
    """A guest on A, and a host B for it to go to."""

    def setUp(self):
        super(StartUpTestCase, self).setUp()
        self.start_hosts('host-a', 'host-b')
        self.server = self.boot('host-a')
        self.a = self.hypervisor('host-a')

    def _seen(self, server=None):
        server = server or self.server
        return '%s, migrations %s, guest %s' % (
            self.nova_says(server), self.migration_statuses(server),
            self.where(server))

    def _must_be_held(self, server=None, vm_state='active'):
        server = server or self.server
        self.assertEqual((vm_state, 'migrating', 'host-a'),
                         self.nova_says(server), self._seen(server))
        self.assertIn(server['id'], self.held('host-a'))

    def _must_be_settled(self, server=None, vm_state='active',
                         state='running', status='cancelled'):
        server = server or self.server
        self.assertEqual((vm_state, None, 'host-a'), self.nova_says(server),
                         self._seen(server))
        self.assertEqual({'host-a': state}, self.where(server))
        self.assertEqual([('host-b', status)],
                         self.migration_statuses(server))
        self.assertNotIn(server['id'], self.held('host-a'))

    def _set_record(self, status):
        """The migration's record says something else than 'running'."""
        record = self.migrations(self.server)[-1]
        record.status = status
        record.save()

    def _job_must_be_looked_after(self, job, violation):
        """It is over, or the instance is not idle (rule R1)."""
        says = self.nova_says(self.server)
        self.must(not job.running or says.task_state is not None,
                  violation, self._seen())


@properties.twice
class StartUp(StartUpTestCase):
    """What the guard does, and stock Nova does not."""

    @properties.held(stock=IDLE_OVER_JOB, since=[
        ((20, 2), PAUSED_GUEST_RUNS,
         'nova-compute aborts the job, and an abort resumes the guest')])
    def test_paused_guest_stays_paused(self):
        self.act(self.server, 'pause')
        self.wait_for_server(self.server, lambda s: s['status'] == 'PAUSED')
        job = self.begin_migration(self.server, 'host-b')
        self.restart_compute('host-a')
        self._job_must_be_looked_after(job, IDLE_OVER_JOB)
        self.assertEqual('cancelled', job.outcome)
        self.must(self.where(self.server) == {'host-a': 'paused'},
                  PAUSED_GUEST_RUNS, self._seen())
        self._must_be_settled(vm_state='paused', state='paused')

    def _test_record(self, status, at_the_end):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self._set_record(status)
        self.start_compute('host-a')
        self._job_must_be_looked_after(job, IDLE_OVER_JOB)
        self.assertEqual('cancelled', job.outcome)
        self._must_be_settled(status=at_the_end)

    @properties.held(stock=IDLE_OVER_JOB)
    def test_record_is_accepted(self):
        self._test_record('accepted', 'cancelled')

    @properties.held(stock=IDLE_OVER_JOB)
    def test_record_is_preparing(self):
        self._test_record('preparing', 'cancelled')

    @properties.held(stock=IDLE_OVER_JOB)
    def test_record_is_error(self):
        self._test_record('error', 'cancelled')

    def _reset_state(self, state):
        self.act(self.server, 'os-resetState', {'state': state})
        says = self.nova_says(self.server)
        self.assertEqual((state, None, 'host-a'), says)

    @properties.held(stock=JOB_GOES_ON)
    def test_instance_is_in_error(self):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self._reset_state('error')
        self.start_compute('host-a')
        self.must(not job.running, JOB_GOES_ON, self._seen())
        self.assertEqual('cancelled', job.outcome)
        self._must_be_settled()

    @properties.held(stock=IDLE_OVER_JOB)
    def test_state_was_reset(self):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self._reset_state('active')
        self.start_compute('host-a')
        self._job_must_be_looked_after(job, IDLE_OVER_JOB)
        self.assertEqual('cancelled', job.outcome)
        self._must_be_settled()

    @properties.held(stock=IDLE_OVER_JOB)
    def test_state_was_reset_and_the_abort_fails(self):
        self.a.abort_is_refused()
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self._reset_state('active')
        self.start_compute('host-a')
        self._job_must_be_looked_after(job, IDLE_OVER_JOB)
        self._must_be_held()
        self.assertTrue(self.refused(self.live_migrate, self.server,
                                     'host-b'))

    def _complete_while_down(self):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        job.complete()
        self.start_compute('host-a')

    def _must_run_on_b_alone(self):
        self.must(self.server['id'] not in self.world.ran_twice, TWO_QEMUS,
                  self._seen())
        self.assertEqual({'host-b': 'running'}, self.where(self.server))
        self.settle('host-a')
        self.assertEqual({'host-b': 'running'}, self.where(self.server))
        self.assertEqual(('active', None, 'host-b'),
                         self.nova_says(self.server), self._seen())

    @properties.held(stock=TWO_QEMUS)
    def test_completed_while_down_and_guests_are_resumed(self):
        self.flags(resume_guests_state_on_host_boot=True)
        self._complete_while_down()
        self._must_run_on_b_alone()

    @properties.held(stock=TWO_QEMUS)
    def test_completed_while_down_and_user_reboots(self):
        self._complete_while_down()
        refused = self.refused(self.act, self.server, 'reboot',
                               {'type': 'HARD'})
        if not refused:
            self.wait_until(
                lambda: not self.nova_says(self.server).task_state,
                self._seen)
        self._must_run_on_b_alone()

    @properties.held(stock=IDLE_OVER_JOB)
    def test_post_copy_is_not_aborted(self):
        job = self.begin_migration(self.server, 'host-b')
        job.switch_to_postcopy()
        self._set_record('running (post-copy)')
        self.restart_compute('host-a')
        self._job_must_be_looked_after(job, IDLE_OVER_JOB)
        # it is seen through, and the API refuses actions meanwhile
        self.assertEqual(('active', 'migrating', 'host-a'),
                         self.nova_says(self.server), self._seen())
        self.assertEqual([], self.a.aborts)
        self.assertTrue(job.running)
        job.complete()
        self.wait_until(
            lambda: not self.nova_says(self.server).task_state, self._seen)
        self._must_run_on_b_alone()


class Trouble(StartUpTestCase):
    """What must not keep nova-compute from starting."""

    GUARD = True

    def _at_listing(self, hooks, function):
        """Call something when domains are listed first, the driver being up.

        :param hooks: ``before`` or ``after`` of the hypervisor
        """
        def once(client, uuid):
            hooks['listAllDomains'].remove(once)
            function()

        # drivers of some releases list domains themselves, to initialise
        self.useFixture(races.CallAfter(
            driver.LibvirtDriver, 'init_host',
            lambda virt_driver: hooks['listAllDomains'].append(once)))

    def test_libvirt_goes_away(self):
        """It leaves when the guard asks, and is back when Nova itself asks.

        Without it, nova-compute does not start, guard or no guard.
        """
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        job.cancel()

        def go_away():
            self.a.away = True

        def come_back(*args):
            self.a.away = False

        self._at_listing(self.a.before, go_away)
        # Nova asks for the host's name next, or has it and goes through the
        # instances
        self.a.before['getHostname'].append(come_back)
        self.useFixture(races.CallBefore(
            manager.ComputeManager,
            '_error_out_instances_whose_build_was_interrupted', come_back))
        self.start_compute('host-a')
        self._must_be_held()
        self.assertIn('Cannot recv data', self.logged('nova_migration_guard'))
        self.settle('host-a')
        self._must_be_settled()

    def test_guest_leaves_between_listing_and_asking(self):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')

        self._at_listing(self.a.after, job.complete)
        self.start_compute('host-a')
        self.assertEqual('completed', job.outcome)
        self._must_be_held()
        self.assertEqual({'host-b': 'running'}, self.where(self.server))

    def test_idle_guest_vanishes_between_listing_and_asking(self):
        domain = self.a.domains[self.server['id']]
        self.kill_compute('host-a')
        self._at_listing(self.a.after, lambda: self.a.forget(domain))
        self.start_compute('host-a')
        self.assertEqual(('active', None, 'host-a'),
                         self.nova_says(self.server))
        self.assertEqual({}, self.held('host-a'))

    def test_monitor_hangs(self):
        """One guest's monitor hangs: it costs one timeout, not its peers."""
        other = self.boot('host-a', name='other')
        idle = self.boot('host-a', name='idle')
        self.flags(max_concurrent_live_migrations=2)
        self.restart_compute('host-a')
        jobs = {}
        for server in (self.server, other):
            jobs[server['id']] = self.begin_migration(server, 'host-b')
        self.kill_compute('host-a')
        domain = self.a.domains[self.server['id']]
        domain.hung = True
        began = time.monotonic()
        self.start_compute('host-a')
        took = time.monotonic() - began
        self.assertLess(took, self.GUARD_OPTIONS['startup_timeout'] + 10)
        self.assertEqual([], self.a.slowed)
        self._must_be_held()
        self._must_be_settled(other)
        self.assertEqual(('active', None, 'host-a'), self.nova_says(idle))
        self.assertEqual([self.server['id']], list(self.held('host-a')))
        # still: another round changes nothing and comes to an end
        self.guard_of('host-a').settle_held()
        self._must_be_held()
        domain.hung = False
        self.settle('host-a')
        self._must_be_settled()
        self.assertEqual('cancelled', jobs[self.server['id']].outcome)

    def test_guest_that_nova_does_not_know(self):
        known = self.a.domains[self.server['id']].XMLDesc(0)
        foreign = self.a.run(known.replace(self.server['id'], FOREIGN))
        job = self.a.migrate(foreign, 'host-b', foreign.XMLDesc(0), 0)
        self.restart_compute('host-a')
        self.assertTrue(job.running)
        self.assertEqual([], self.a.aborts)
        self.assertEqual({}, self.held('host-a'))
        self.assertIn('no instance of this host',
                      self.logged(about=FOREIGN))
        self.assertEqual(('active', None, 'host-a'),
                         self.nova_says(self.server))

    def test_job_that_nova_did_not_start(self):
        """An administrator's virsh migrates an instance of this host."""
        domain = self.a.domains[self.server['id']]
        job = self.a.migrate(domain, 'host-b', domain.XMLDesc(0), 0)
        self.restart_compute('host-a')
        self.assertTrue(job.running)
        self.assertEqual([], self.a.aborts)
        self.assertIn('Nova did not start',
                      self.logged(about=self.server['id']))
        self.assertTrue(self.refused(self.live_migrate, self.server,
                                     'host-b'))

    def test_destination_restarts(self):
        """nova-compute on B starts while a guest arrives there."""
        job = self.begin_migration(self.server, 'host-b')
        self.restart_compute('host-b')
        self.assertTrue(job.running)
        self.assertEqual([], self.hypervisor('host-b').aborts)
        self.assertEqual({}, self.held('host-b'))
        job.complete()
        self.wait_until(lambda: self.nova_says(self.server) ==
                        ('active', None, 'host-b'), self._seen)
        self.assertEqual({'host-b': 'running'}, self.where(self.server))

    def test_nothing_in_flight(self):
        self.restart_compute('host-a')
        self.assertEqual(('active', None, 'host-a'),
                         self.nova_says(self.server))
        self.assertEqual({'host-a': 'running'}, self.where(self.server))
        self.assertEqual({}, self.held('host-a'))
        self.assertEqual([], self.a.aborts)
