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


"""How an interrupted operation on a disk ends when more goes wrong."""

import os

import fixtures

from nova.compute import manager
from nova import exception
from nova.virt.libvirt import driver
from nova.volume import cinder
from oslo_serialization import jsonutils

from tests.functional import crashes
from tests.functional import disk_operations
from tests.functional import libvirt_api
from tests.functional import properties
from tests.functional import wrapping

WAITS = disk_operations.WAITS
NOT_AS_USED = disk_operations.NOT_AS_USED

OLD = disk_operations.OLD
NEW = disk_operations.NEW
SNAPSHOT = disk_operations.SNAPSHOT


@properties.twice
class VolumeSwap(disk_operations.VolumeSwapTestCase):

    def setUp(self):
        super(VolumeSwap, self).setUp()
        #: the volumes that were disconnected from A
        self.disconnected = []
        self.useFixture(fixtures.MockPatchObject(
            driver.LibvirtDriver, '_disconnect_volume', wrapping.Wrapped(
                driver.LibvirtDriver, '_disconnect_volume',
                self._disconnect)))

    def _disconnect(self, call, virt_driver, context, connection_info, *args,
                    **kwargs):
        self.disconnected.append(connection_info['serial'])
        return call()

    def let_abort_fail(self, when):
        """Let libvirt report an error for each abort of a block job.

        :param when: 'before' or 'after' it has taken effect
        :returns: the hooks, to be removed
        """
        def fail(client, uuid):
            raise libvirt_api.error(1, 'internal error')
        hooks = getattr(self.hypervisor('host-a'), when)['blockJobAbort']
        hooks.append(fail)
        self.addCleanup(hooks.clear)
        return hooks

    @properties.guarded
    def test_serial_is_not_the_volume(self):
        """A migrated volume can have another serial than its ID."""
        bdm, = self._volume_bdms(self.server)
        bdm.connection_info = jsonutils.dumps(dict(
            jsonutils.loads(bdm.connection_info), serial='another'))
        bdm.save()
        self.begin().copied()
        self.wait_until(lambda: self.mapped()[0][0] == NEW, 'it is swapped')
        self.wait_until(lambda: not self.journaled('host-a'),
                        'its entry is removed')
        self.must_be_done()

    @properties.held(stock=NOT_AS_USED)
    def test_pivot_is_done_and_reported_failed(self):
        """The guest uses a volume that Cinder would delete."""
        job = self.begin()
        self.let_abort_fail('after')
        job.copied()
        self.wait_until(lambda: not self.domain.block_jobs, 'it pivots')
        self.wait_until(
            lambda: self.attachments(OLD) != self.attachment or
            self.told.of('roll_detaching'), 'Nova has ended it')
        self.wait_until(lambda: len(self.told.of(
            'migrate_volume_completion')) == 1, 'Cinder is told')
        if self.guard:
            self.wait_until(lambda: not self.journaled('host-a'),
                            'its entry is removed')
        self.must_be_done()
        self.assertEqual(os.path.basename(
            self.domain.defined_source('vdb')), NEW)

    @properties.held(stock=NOT_AS_USED)
    def test_larger_volume_and_the_guest_stops(self):
        """Only a guest that runs has to be told of a size."""
        get = cinder.API.get
        own = bool(not hasattr(get, 'side_effect'))
        self.useFixture(fixtures.MockPatchObject(
            cinder.API, 'get', lambda api, ctxt, volume_id, *args, **kwargs:
            dict(get(*((api,) if own else ()) + (ctxt, volume_id)),
                 size=2 if volume_id == NEW else 1)))
        stop = self.stop_at('host-a', cinder.API, 'attachment_complete')
        self.begin().copied()
        stop.wait()
        self.kill_compute('host-a')
        self.domain.shutdown()
        self.start()
        bdm, = self._volume_bdms(self.server)
        self.must(bdm.volume_id == NEW, NOT_AS_USED, bdm.volume_id)
        self.assertEqual(2, bdm.volume_size)
        self.assertEqual({}, self.held('host-a'))

    @properties.guarded
    def test_disconnected_once(self):
        """What has the same address later can be another volume."""
        away = self.useFixture(crashes.Away(
            IOError('no answer'), (cinder.API, 'migrate_volume_completion')))
        self.begin()
        self.kill_compute('host-a')
        self.start_compute('host-a')
        self.assertIn('no answer',
                      self.held('host-a')[self.server['id']].reason)
        self.assertEqual([NEW], self.disconnected)
        away.come_back()
        self.settle('host-a')
        self.must_be_undone()
        self.assertEqual([NEW], self.disconnected)

    @properties.guarded
    def test_old_volume_is_disconnected_once(self):
        stop = self.stop_at('host-a', cinder.API, 'migrate_volume_completion')
        self.begin().copied()
        stop.wait()
        self.assertEqual([OLD], self.disconnected)
        self.restart()
        self.must_be_done()
        self.assertEqual([OLD], self.disconnected)

    @properties.guarded
    def test_new_volume_is_deleted(self):
        """Cinder refuses to end a migration to a volume that is gone."""
        self.begin()
        self.kill_compute('host-a')
        self.useFixture(crashes.Away(
            OSError('404'), (cinder.API, 'migrate_volume_completion')))
        get = cinder.API.get

        def get_others(api, ctxt, volume_id, *args, **kwargs):
            if volume_id == NEW:
                raise exception.VolumeNotFound(volume_id=NEW)
            return get(api, ctxt, volume_id, *args, **kwargs)
        self.useFixture(fixtures.MockPatchObject(
            cinder.API, 'get', get_others))
        self.start()
        self.must_be_undone()

    @properties.guarded
    def test_instance_is_deleted_when_pivoted(self):
        """Which volume has the data can not be known any more."""
        stop = self.stop_at('host-a', cinder.API, 'attachment_complete')
        self.begin().copied()
        stop.wait()
        self.kill_compute('host-a')
        self.force_down('host-a')
        self.delete(self.server)
        self.start_compute('host-a')
        self.guard_of('host-a').settle_held()
        self.assertEqual([], self.told.of('migrate_volume_completion'))
        self.assertEqual(1, len(self.attachments(NEW)))
        held = self.held('host-a')[self.server['id']]
        self.assertIn(NEW, held.reason)

    def fail_to_make_an_image(self):
        """Leave a job on vda, while volumes are swapped."""
        self.begin_without_cinder()
        self.act(self.server, 'createImage', {'name': 'picture'})
        image = self.wait_for_block_job('vda')
        hooks = self.let_abort_fail('before')
        image.copied()
        self.wait_until(lambda: self.held('host-a') and
                        not self.nova_says(self.server).task_state,
                        'it is held')
        del hooks[:]
        self.guard_of('host-a').settle_held()
        self.assertIn(self.server['id'], self.held('host-a'))
        self.assertEqual('image_snapshot',
                         self.nova_says(self.server).task_state)

    @properties.guarded
    def test_entry_is_removed_while_another_operation_runs(self):
        """The guard ends the task state that it has given the instance."""
        self.fail_to_make_an_image()
        for path in self.journaled('host-a'):
            if OLD not in path.name:
                path.unlink()
        self.guard_of('host-a').settle_held()
        self.assertIn(self.server['id'], self.held('host-a'))
        self.domain.block_jobs['vdb'].copied()
        self.wait_until(lambda: self.mapped()[0][0] == NEW, 'it is swapped')
        self.settle('host-a')
        self.must_be_done()

    @properties.guarded
    def test_another_operation_still_runs(self):
        """What has failed is not forgotten because of it."""
        self.fail_to_make_an_image()
        self.assertIn('vdb', self.domain.block_jobs)
        self.domain.block_jobs['vdb'].copied()
        self.wait_until(lambda: self.mapped()[0][0] == NEW, 'it is swapped')
        self.settle('host-a')
        self.must_be_done()
        self.assertEqual([], os.listdir(self.snapshots))

    @properties.guarded
    def test_task_of_another_operation(self):
        """An image that is about to be made keeps its task state."""
        self.act(self.server, 'createImage', {'name': 'broken'})
        job = self.wait_for_block_job('vda')
        hooks = self.let_abort_fail('before')
        job.copied()
        self.wait_until(lambda: self.held('host-a') and
                        not self.nova_says(self.server).task_state,
                        'it is held')
        del hooks[:]
        stop = self.stop_at('host-a', manager.ComputeManager,
                            '_snapshot_instance')
        self.act(self.server, 'createImage', {'name': 'picture'})
        stop.wait()
        self.settle('host-a')
        self.assertEqual('image_snapshot',
                         self.nova_says(self.server).task_state)


@properties.twice
class AssistedSnapshot(disk_operations.AssistedSnapshotTestCase):

    @properties.held(stock=WAITS)
    def test_guest_stops_in_merge(self):
        """A guest that is off does not tell whether it was merged.

        Cinder deletes the file that it believes to be merged.
        """
        self.begin_deletion()
        self.kill_compute('host-a')
        self.domain.shutdown()
        self.start()
        self.must_be_well()
        self.must(self.told.of('update_snapshot_status') ==
                  [(SNAPSHOT, 'error_deleting')], WAITS, self.told.calls)

    @properties.guarded
    def test_cinder_has_not_taken_note(self):
        """Until then it says that the guest uses the former file."""
        self.begin_creation()
        self.snapshot_status = 'creating'
        self.kill_compute('host-a')
        self.start_compute('host-a')
        self.assertEqual([(SNAPSHOT, 'creating')],
                         self.told.of('update_snapshot_status'))
        self.assertEqual([], self.told.of('refresh'))
        self.assertIn(self.server['id'], self.held('host-a'))
        self.snapshot_status = 'available'
        self.settle('host-a')
        self.must_be_well()
        self.assertEqual([()], self.told.of('refresh'))

    @properties.guarded
    def test_image_is_made_at_the_same_time(self):
        """The definition follows the guest to the new file."""
        self.begin_creation()
        self.act(self.server, 'createImage', {'name': 'picture'})
        self.wait_for_block_job('vda')
        self.restart()
        self.must_be_well()
        self.assertEqual('snap-3', self.domain.defined_source('vdb'))

    @properties.guarded
    def test_cinder_does_not_answer(self):
        """It is told when it does."""
        away = self.useFixture(crashes.Away(
            exception.CinderConnectionFailed(reason='no answer'),
            (cinder.API, 'update_snapshot_status')))
        self.begin_deletion()
        self.kill_compute('host-a')
        self.start_compute('host-a')
        self.assertIn(self.server['id'], self.held('host-a'))
        away.come_back()
        self.settle('host-a')
        self.must_be_well()
        self.assertEqual([(SNAPSHOT, 'error_deleting')],
                         self.told.of('update_snapshot_status'))
