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

"""A live migration that ended while nobody looked is finished."""

from nova.compute import resource_tracker
from nova.compute import rpcapi
from nova import objects

from tests.functional import properties
from tests.functional import settlement

LEFT_BEHIND = settlement.LEFT_BEHIND
TWO_QEMUS = 'two QEMUs ran'
NOT_FINISHED = 'the migration was not finished'
ZOMBIE = 'the guest outlives its server'


@properties.twice
class Finish(settlement.SettlementTestCase):
    """nova-compute on A dies, and the guest goes on running on B."""

    def _end_while_down(self):
        """The migration A -> B ends while nova-compute on A is down."""
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        job.complete()

    def _start(self):
        self.start_compute('host-a')
        if self.guard:
            self.settle('host-a')

    def _must_be_finished(self):
        after = self.footprint(self.server)
        self.must(after['nova'] == ('active', None, 'host-b'), NOT_FINISHED,
                  after)
        self.must_be_on('host-b')

    def _must_reboot_hard(self):
        self.act(self.server, 'reboot', {'type': 'HARD'})
        self.wait_for_server(self.server, lambda server: (
            server['status'] == 'ACTIVE' and
            not server['OS-EXT-STS:task_state']))
        self.assertEqual({'host-b': 'running'}, self.where(self.server))
        self.assertNotIn(self.server['id'], self.world.ran_twice)

    @properties.held(stock=NOT_FINISHED)
    def test_ended_while_down(self):
        self._end_while_down()
        self._start()
        self._must_be_finished()
        self._must_reboot_hard()
        self.must_migrate_to('host-a')
        self.must_migrate_to('host-c')
        self.must_delete()

    @properties.held(stock=TWO_QEMUS)
    def test_hard_reboot_after_reset_state(self):
        """The operator's word is not enough to start the guest twice."""
        self._end_while_down()
        self.kill_compute('host-b')
        self.start_compute('host-a')
        self.act(self.server, 'os-resetState', {'state': 'active'})
        if not self.refused(self.act, self.server, 'reboot',
                            {'type': 'HARD'}):
            self.wait_until(lambda: not self.nova_says(
                self.server).task_state, 'rebooted')
        self.must(not self.world.ran_twice, TWO_QEMUS, self.where(self.server))
        self.start_compute('host-b')
        self.settle('host-a')
        self._must_be_finished()

    @properties.held(stock=TWO_QEMUS)
    def test_guests_are_resumed_when_the_host_boots(self):
        self._end_while_down()
        self.flags(resume_guests_state_on_host_boot=True)
        self._start()
        self.must(not self.world.ran_twice, TWO_QEMUS, self.where(self.server))
        self._must_be_finished()

    @properties.held(stock=ZOMBIE)
    def test_delete(self):
        self._end_while_down()
        self.start_compute('host-a')
        self.api.delete_server(self.server['id'])
        self.wait_until(lambda: not self.api.get_servers(), 'it is deleted')
        self.wait_until_or_violation(
            lambda: not self.where(self.server), ZOMBIE)

    @properties.guarded
    def test_delete_while_the_destination_is_away(self):
        self._end_while_down()
        self.kill_compute('host-b')
        self.start_compute('host-a')
        self.api.delete_server(self.server['id'])
        self.wait_until(
            lambda: self.nova_says(self.server).task_state == 'migrating',
            'the deletion is refused')
        self.assertEqual({'host-b': 'running'}, self.where(self.server))
        self.assertIn('host-a', self.disks(self.server))
        self.start_compute('host-b')
        self.api.delete_server(self.server['id'])
        self.wait_until(lambda: not self.where(self.server), 'it is gone')
        self.wait_until(lambda: not self.disks(self.server), 'no disk is left')

    @properties.held(stock=NOT_FINISHED)
    def test_guest_was_paused(self):
        self.act(self.server, 'pause')
        self.wait_for_server(self.server,
                             lambda server: server['status'] == 'PAUSED')
        self._end_while_down()
        self._start()
        self.must(self.nova_says(self.server) == ('paused', None, 'host-b'),
                  NOT_FINISHED, self.nova_says(self.server))
        self.assertEqual({'host-b': 'paused'}, self.where(self.server))

    @properties.held(stock=NOT_FINISHED)
    def test_vm_state_is_error(self):
        self._end_while_down()
        instance = self.instance(self.server)
        instance.vm_state = 'error'
        instance.save()
        self._start()
        self._must_be_finished()

    # ---- nova-compute dies in post-migration

    def _kill_at(self, owner, name, after=False):
        job = self.begin_migration(self.server, 'host-b')
        stop = self.stop_at('host-a', owner, name, after)
        job.complete()
        stop.wait()
        self.restart_compute('host-a')
        if self.guard:
            self.settle('host-a')

    @properties.held(stock=NOT_FINISHED)
    def test_killed_before_the_destination_takes_over(self):
        self._kill_at(rpcapi.ComputeAPI, 'post_live_migration_at_destination')
        self._must_be_finished()

    @properties.held(stock=LEFT_BEHIND)
    def test_killed_after_the_destination_took_over(self):
        self._kill_at(rpcapi.ComputeAPI, 'post_live_migration_at_destination',
                      after=True)
        self._must_be_finished()

    @properties.held(stock=NOT_FINISHED)
    def test_killed_when_post_migration_begins(self):
        self._kill_at(
            resource_tracker.ResourceTracker,
            'free_pci_device_allocations_for_instance')
        self._must_be_finished()

    @properties.held(stock=LEFT_BEHIND)
    def test_killed_before_the_record_is_completed(self):
        self._kill_at(objects.Migration, 'save')
        self._must_be_finished()

    @properties.guarded
    def test_journal_is_lost(self):
        self.api.delete_server_volume(self.server['id'], self.volume)
        self.wait_until(lambda: not self.api.get_server_volumes(
            self.server['id']), 'the volume is detached')
        self._end_while_down()
        self.lose_journal('host-a')
        self._start()
        self._must_be_finished()
