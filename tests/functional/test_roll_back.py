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

"""What an interrupted live migration took is given back."""

from nova.compute import manager
from nova.compute import rpcapi
from nova import context
from nova import exception
from nova import objects
from nova.virt.libvirt import driver

from tests.functional import crashes
from tests.functional import properties
from tests.functional import settlement

LEFT_BEHIND = settlement.LEFT_BEHIND
HALTED = 'the guest is halted'
MIGRATES_IDLE = 'an idle instance migrates'


@properties.twice
class RollBack(settlement.SettlementTestCase):
    """nova-compute on A dies, and the guest goes on running there."""

    def _restart(self):
        self.kill_compute('host-a')
        self._start()

    def _start(self):
        self.start_compute('host-a')
        if self.guard:
            self.settle('host-a')
        for job in self.world.jobs_of(self.server['id']):
            if job.running:
                # stock Nova before 20.2 lets it go on, which is not what
                # these tests are about
                job.cancel()

    def _test(self):
        self._restart()
        self.must_be_as_before()
        self.must_live_on()

    @properties.held(stock=LEFT_BEHIND)
    def test_job_is_aborted(self):
        self.begin_migration(self.server, 'host-b')
        self._test()

    @properties.held(stock=LEFT_BEHIND)
    def test_job_fails_while_down(self):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        job.fail()
        self._start()
        self.must_be_as_before()
        self.must_live_on()

    @properties.held(stock=LEFT_BEHIND)
    def test_before_the_destination_prepares(self):
        stop = self.stop_at('host-a', rpcapi.ComputeAPI, 'pre_live_migration')
        self.live_migrate(self.server, 'host-b')
        stop.wait()
        self._test()

    @properties.held(stock=LEFT_BEHIND)
    def test_after_the_destination_prepared(self):
        stop = self.stop_at('host-a', rpcapi.ComputeAPI, 'pre_live_migration',
                            after=True)
        self.live_migrate(self.server, 'host-b')
        stop.wait()
        self._test()

    @properties.held(stock=LEFT_BEHIND)
    def test_queued(self):
        stop = self.stop_at('host-a', manager.ComputeManager,
                            '_do_live_migration')
        self.live_migrate(self.server, 'host-b')
        stop.wait()
        self.assertEqual('queued', self.migrations(self.server)[-1].status)
        self._test()

    @properties.held(stock=MIGRATES_IDLE)
    def test_request_arrives_when_it_is_settled(self):
        """The conductor's cast waited while nova-compute was down."""
        cast = self.useFixture(crashes.LateCall(
            rpcapi.ComputeAPI, 'live_migration'))
        self.live_migrate(self.server, 'host-b')
        cast.wait()
        self.restart_compute('host-a')
        self.wait_until(lambda: not self.nova_says(self.server).task_state,
                        'it is idle')
        cast.arrive()
        self.wait_until(
            lambda: self.world.jobs_of(self.server['id']) or
            'The live migration is refused' in self.logged(
                about=self.server['id']), 'it has arrived')
        self.must(not self.world.jobs_of(self.server['id']), MIGRATES_IDLE,
                  self.nova_says(self.server))
        self.must_be_as_before()
        self.must_live_on()

    @properties.held(stock=LEFT_BEHIND)
    def test_vm_state_is_error(self):
        self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self._change(vm_state='error')
        self._start()
        self.must_be_as_before()

    @properties.held(stock=LEFT_BEHIND)
    def test_reset_state_before_the_restart(self):
        self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self.act(self.server, 'os-resetState', {'state': 'active'})
        self.assertIsNone(self.nova_says(self.server).task_state)
        self._start()
        self.must_be_as_before()

    @properties.held(stock=LEFT_BEHIND)
    def test_record_is_ended_already(self):
        self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        migration = self.migrations(self.server)[-1]
        migration.status = 'error'
        migration.save()
        self._start()
        self.must_be_as_before()

    @properties.held(stock=LEFT_BEHIND)
    def test_interfaces_cannot_be_plugged(self):
        """Nova's start-up gives up on the instance before it looks further."""
        self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self.useFixture(crashes.Away(
            exception.VirtualInterfacePlugException(),
            (driver.LibvirtDriver, 'plug_vifs')))
        self._start()
        self.before['nova'] = self.nova_says(self.server)
        self.must_be_as_before()

    @properties.held(stock=properties.HOLDS, since=[
        ((20, 2), HALTED, 'its start-up aborts whatever the phase')])
    def test_abort_would_halt_the_guest(self):
        """The network is cut while memory is copied."""
        self._cut_the_network(percent=80)

    @properties.held(stock=properties.HOLDS, since=[
        ((20, 2), HALTED, 'its start-up aborts whatever the phase')])
    def test_abort_could_halt_the_guest(self):
        """The network is cut while a disk is copied."""
        self._cut_the_network(percent=10)

    def _cut_the_network(self, percent):
        job = self.begin_migration(self.server, 'host-b', percent=percent)
        self.world.cut_off.add('host-b')
        self.restart_compute('host-a')
        self.must(not self.hypervisor('host-a').aborts, HALTED,
                  self.nova_says(self.server))
        if self.guard:
            self.assertIn('an abort could halt the guest',
                          self.held('host-a')[self.server['id']].reason)
            self.assertTrue(job.running)
            self.world.cut_off.clear()
            self.settle('host-a')
            self.must_be_as_before()

    @properties.held(stock=LEFT_BEHIND)
    def test_guest_was_paused(self):
        self.act(self.server, 'pause')
        self.wait_for_server(self.server,
                             lambda server: server['status'] == 'PAUSED')
        self.before = self.footprint(self.server)
        self.begin_migration(self.server, 'host-b')
        self._restart()
        self.must_be_as_before()

    @properties.guarded
    def test_journal_is_lost(self):
        """The database, Placement and Neutron tell enough."""
        self.api.delete_server_volume(self.server['id'], self.volume)
        self.wait_until(lambda: not self.api.get_server_volumes(
            self.server['id']), 'the volume is detached')
        self.before = self.footprint(self.server)
        self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self.lose_journal('host-a')
        self.start_compute('host-a')
        self.must_be_as_before()

    def _change(self, **fields):
        instance = objects.Instance.get_by_uuid(
            context.get_admin_context(), self.server['id'])
        instance.update(fields)
        instance.save()
