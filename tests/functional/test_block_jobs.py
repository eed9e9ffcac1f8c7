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


"""nova-compute dies while QEMU copies or merges a disk for it."""

import errno
import os

import fixtures

from nova.virt.libvirt import driver
from nova.virt.libvirt import utils
from nova.volume import cinder

from nova_migration_guard import durable

from tests.functional import disk_operations
from tests.functional import libvirt_api
from tests.functional import properties
from tests.functional import releases

UNOWNED_JOB = disk_operations.UNOWNED_JOB
NOT_DEFINED = disk_operations.NOT_DEFINED
WAITS = disk_operations.WAITS
NOT_AS_USED = disk_operations.NOT_AS_USED

OLD = disk_operations.OLD
NEW = disk_operations.NEW
SNAPSHOT = disk_operations.SNAPSHOT


@properties.twice
class LiveSnapshot(disk_operations.LiveSnapshotTestCase):

    @properties.held(stock=UNOWNED_JOB)
    def test_killed_in_copy(self):
        self.begin()
        self.restart()
        self.must_be_undone()
        self.must_live_on()

    @properties.held(stock=UNOWNED_JOB if releases.copies_before_it_freezes()
                     else WAITS)
    def test_killed_while_frozen(self):
        stop = self.stop_at('host-a', driver.LibvirtDriver, '_set_quiesced',
                            after=True)
        self.act(self.server, 'createImage', {'name': 'picture'})
        if releases.copies_before_it_freezes():
            self.wait_for_block_job('vda').copied()
        stop.wait()
        self.assertEqual(1, self.domain.frozen)
        self.restart()
        self.must_be_undone()

    @properties.held(stock=NOT_DEFINED)
    def test_killed_when_the_job_had_ended(self):
        job = self.begin()
        stopped = self.stop_after_abort()
        job.copied()
        self.wait_until(lambda: stopped, 'the job has ended')
        self.restart()
        self.must_be_undone()

    @properties.held(stock='the guest is forgotten')
    def test_guest_stops_while_down(self):
        self.begin()
        self.kill_compute('host-a')
        self.domain.shutdown()
        self.start()
        self.must(self.where(self.server) == {'host-a': 'shutoff'},
                  'the guest is forgotten', self.where(self.server))
        self.must(self.image() is None, WAITS, self.image())

    @properties.guarded
    def test_journal_is_lost(self):
        self.begin()
        self.kill_compute('host-a')
        self.lose_journal('host-a')
        self.start()
        self.must_be_well()
        self.assertIsNone(self.image())

    @properties.guarded
    def test_switched_off(self):
        """Nothing is written down, and a start leaves all to Nova."""
        self.flags(block_jobs=False, group='migration_guard')
        self.begin()
        self.assertEqual([], self.journaled('host-a'))
        self.kill_compute('host-a')
        self.start_compute('host-a')
        self.assertEqual({}, self.held('host-a'))
        self.assertIsNotNone(self.domain.block_jobs.get('vda'))

    @properties.guarded
    def test_abort_does_not_work(self):
        """It is held, says why, and is settled when the abort works."""
        self.begin()
        host = self.hypervisor('host-a')
        works, host.abort_block_job = host.abort_block_job, (
            lambda domain, dev: None)
        self.kill_compute('host-a')
        self.start_compute('host-a')
        held = self.held('host-a')[self.server['id']]
        self.assertIn('block job on disk vda is still there', held.reason)
        self.assertIsNotNone(self.nova_says(self.server).task_state)
        self.assertTrue(self.refused(self.act, self.server, 'reboot',
                                     {'type': 'HARD'}))
        host.abort_block_job = works
        self.settle('host-a')
        self.must_be_undone()

    @properties.guarded
    def test_libvirtd_goes_away_in_the_abort(self):
        self.begin()
        host = self.hypervisor('host-a')
        works = host.abort_block_job

        def abort(domain, dev):
            host.away = True
            raise libvirt_api.unavailable()
        host.abort_block_job = lambda domain, dev: None
        self.kill_compute('host-a')
        self.start_compute('host-a')
        host.abort_block_job = abort
        self.guard_of('host-a').settle_held()
        held = self.held('host-a')[self.server['id']]
        self.assertIn('Connection reset by peer', held.reason)
        self.assertIsNotNone(self.nova_says(self.server).task_state)
        host.away, host.abort_block_job = False, works
        self.settle('host-a')
        self.must_be_undone()

    @properties.guarded
    def test_held_instance_is_deleted(self):
        """Its disk's job ends with it, and Glance is told all the same."""
        self.begin()
        host = self.hypervisor('host-a')
        host.abort_block_job = lambda domain, dev: None
        self.kill_compute('host-a')
        self.start_compute('host-a')
        self.assertIn(self.server['id'], self.held('host-a'))
        self.delete(self.server)
        self.wait_until(lambda: not self.where(self.server), 'it is gone')
        self.settle('host-a')
        self.assertIsNone(self.image())
        self.assertEqual([], os.listdir(self.snapshots))
        self.assertEqual([], self.journaled('host-a'))

    @properties.guarded
    def test_journal_cannot_be_written(self):
        """The image is refused, and nothing is left of it."""
        self.useFixture(fixtures.MockPatchObject(
            durable, 'write', side_effect=OSError(
                errno.ENOSPC, 'No space left on device')))
        self.act(self.server, 'createImage', {'name': 'picture'})
        self.wait_until(
            lambda: not self.nova_says(self.server).task_state and
            self.image() is None, 'it has failed')
        self.assertIn('live-snapshot does not begin', self.logged())
        self.must_be_well()

    @properties.guarded
    def test_nothing_goes_wrong(self):
        """The journal has no entry when an image is made."""
        self.useFixture(fixtures.MockPatchObject(
            utils, 'extract_snapshot', side_effect=self._extract))
        self.useFixture(fixtures.MockPatch(
            'nova.privsep.path.chown'))
        self.begin().copied()
        self.wait_until(lambda: self.image() == 'active', 'it is made')
        self.wait_until(lambda: not self.journaled('host-a'),
                        'its entry is removed')
        self.must_be_well()

    @staticmethod
    def _extract(source, source_format, target, *args, **kwargs):
        with open(target, 'w') as stream:
            stream.write('image')


@properties.twice
class VolumeSwap(disk_operations.VolumeSwapTestCase):

    @properties.held(stock=UNOWNED_JOB)
    def test_killed_in_copy(self):
        self.begin()
        self.restart()
        self.must_be_undone()
        self.assertEqual([(OLD, NEW, True)],
                         self.told.of('migrate_volume_completion'))
        self.must_live_on()

    @properties.held(stock=UNOWNED_JOB)
    def test_without_cinder_killed_in_copy(self):
        self.begin_without_cinder()
        self.restart()
        self.must_be_undone()
        self.assertEqual([], self.told.of('migrate_volume_completion'))

    @properties.held(stock=NOT_DEFINED)
    def test_killed_when_pivoted(self):
        job = self.begin()
        stopped = self.stop_after_abort()
        job.copied()
        self.wait_until(lambda: stopped, 'the guest uses the copy')
        self.restart()
        self.must_be_done()
        self.must_live_on()

    @properties.held(stock=NOT_AS_USED)
    def test_killed_before_nova_writes_it_down(self):
        stop = self.stop_at('host-a', cinder.API, 'attachment_complete')
        self.begin().copied()
        stop.wait()
        self.restart()
        self.must_be_done()

    @properties.guarded
    def test_guest_stops_while_down(self):
        """A copy that was not asked to take over is not what was used."""
        self.begin()
        self.kill_compute('host-a')
        self.domain.shutdown()
        self.start()
        self.assertEqual({'host-a': 'shutoff'}, self.where(self.server))
        self.assertEqual(set(), self.attachments(NEW))
        self.assertEqual([(OLD,) + tuple(self.attachment)], self.mapped())

    @properties.guarded
    def test_two_disks_at_once(self):
        self.begin_without_cinder()
        self.act(self.server, 'createImage', {'name': 'picture'})
        self.wait_for_block_job('vda')
        self.restart()
        self.must_be_undone()
        self.assertEqual([], os.listdir(self.snapshots))

    @properties.held(stock=UNOWNED_JOB)
    def test_nobody_restarts_and_it_fails(self):
        """Nova gives up, tells Cinder, and forgets the job."""
        def fail(client, uuid):
            raise libvirt_api.error(1, 'internal error')
        job = self.begin()
        hooks = self.hypervisor('host-a').before['blockJobAbort']
        hooks.append(fail)
        job.copied()
        self.wait_until(lambda: not self.attachments(NEW), 'it has failed')
        self.wait_until(lambda: self.domain.persistent, 'it is defined')
        del hooks[:]
        if self.guard:
            self.wait_until(lambda: self.held('host-a'), 'it is held')
            self.wait_until(lambda: self.nova_says(self.server).task_state,
                            'actions are refused')
            self.settle('host-a')
        self.must_be_undone()

    @properties.guarded
    def test_nothing_goes_wrong(self):
        self.begin().copied()
        self.wait_until(lambda: self.mapped()[0][0] == NEW, 'it is swapped')
        self.wait_until(lambda: not self.journaled('host-a'),
                        'its entry is removed')
        self.must_be_done()


@properties.twice
class AssistedSnapshot(disk_operations.AssistedSnapshotTestCase):
    """Cinder lets Nova take and remove snapshots of a volume in files."""

    @properties.held(stock=UNOWNED_JOB)
    def test_killed_in_merge(self):
        self.begin_deletion()
        self.restart()
        self.must_be_well()
        self.assertEqual([(SNAPSHOT, 'error_deleting')],
                         self.told.of('update_snapshot_status'))

    @properties.held(stock=WAITS)
    def test_created_while_nobody_waits(self):
        """libvirt has taken the snapshot, and Cinder is not told."""
        self.begin_creation()
        self.restart()
        self.must_be_well()
        self.must(self.told.of('update_snapshot_status') ==
                  [(SNAPSHOT, 'creating')], WAITS, self.told.calls)

    @properties.held(stock=WAITS)
    def test_merged_while_down(self):
        self.begin_deletion()
        self.kill_compute('host-a')
        self.domain.end_merge('vdb')
        self.start()
        self.must_be_well()
        self.must(self.told.of('update_snapshot_status') ==
                  [(SNAPSHOT, 'deleting')], WAITS, self.told.calls)


@properties.twice
class ForeignBlockJob(disk_operations.BlockJobTestCase):
    """Another tool works on a disk."""

    def begin(self):
        self.domain.blockRebase('vda', None)

    @properties.guarded
    def test_is_left_alone(self):
        self.begin()
        self.restart()
        self.assertIn('vda', self.domain.block_jobs)
        self.assertEqual(('active', None, 'host-a'),
                         self.nova_says(self.server))
        self.assertEqual({}, self.held('host-a'))
        self.assertEqual(1, self.logged(about=self.server['id']).count(
            'Left alone: a block job of type PULL on disk vda'))

    @properties.guarded
    def test_is_aborted_on_demand(self):
        self.flags(foreign_block_jobs='abort', group='migration_guard')
        self.begin()
        self.restart()
        self.must_be_well()
