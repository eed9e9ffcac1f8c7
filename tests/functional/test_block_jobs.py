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

from nova.compute import rpcapi
from nova import context
from nova.virt.libvirt import driver
from nova.virt.libvirt import utils
from nova.virt.libvirt.volume import volume as volume_drivers
from nova.volume import cinder

from nova_migration_guard import durable

from tests.functional import cloud
from tests.functional import libvirt_api
from tests.functional import properties
from tests.functional import releases

UNOWNED_JOB = 'a block job runs behind an idle instance'
NOT_DEFINED = 'the domain is forgotten when its guest stops'
WAITS = 'a service waits for what nobody does'
NOT_AS_USED = "Nova's record does not name the volume that is used"

OLD = releases.CinderFixture.IMAGE_BACKED_VOL
NEW = releases.CinderFixture.SWAP_NEW_VOL
SNAPSHOT = 'a3c1f2be-2b8f-4a79-8d1c-4d6f3a1f7e11'


def _file_of_its_own(original):
    """Let each volume be a file of its own; to Nova's fake all are one."""
    def get_config(self, connection_info, disk_info):
        config = original(self, connection_info, disk_info)
        config.source_type = 'file'
        config.source_protocol = config.source_name = None
        config.source_path = '/volumes/' + connection_info['serial']
        return config
    return get_config


class BlockJobTestCase(cloud.CloudTestCase):
    """A guest on A whose disk QEMU works on."""

    def setUp(self):
        super(BlockJobTestCase, self).setUp()
        self.useFixture(releases.images_wait_for_their_data())
        self.snapshots = self.useFixture(fixtures.TempDir()).path
        self.flags(snapshots_directory=self.snapshots, group='libvirt')
        self._stub_images()
        self.start_hosts('host-a', 'host-b')
        self.server = self.boot('host-a')

    def _stub_images(self):
        """No file here is an image that qemu-img could work on."""
        for owner, name, value in (
                (utils, 'get_disk_size', 1),
                (utils, 'get_disk_backing_file', None),
                (utils, 'create_image', None),
                (driver.LibvirtDriver, '_can_quiesce', None)):
            self.useFixture(fixtures.MockPatchObject(
                owner, name, return_value=value))

    @property
    def domain(self):
        return self.hypervisor('host-a').domains[self.server['id']]

    def wait_for_block_job(self, dev):
        return self.wait_until(lambda: self.domain.block_jobs.get(dev),
                               'a block job on %s' % dev)

    def start(self):
        self.start_compute('host-a')
        if self.guard:
            self.settle('host-a')

    def restart(self):
        self.kill_compute('host-a')
        self.start()

    def stop_after_abort(self):
        """Stop nova-compute when it has ended the block job."""
        stopped = []

        def hook(client, uuid):
            stopped.append(uuid)
            self.world.wait_for(lambda: not client.process.alive, 'its end')
        hooks = self.hypervisor('host-a').after['blockJobAbort']
        hooks.append(hook)
        self.addCleanup(hooks.clear)
        return stopped

    def must_be_well(self):
        """No job, a defined domain, an idle instance that can be used."""
        self.must(not self.domain.block_jobs, UNOWNED_JOB,
                  self.nova_says(self.server))
        self.must(self.domain.persistent, NOT_DEFINED, self.domain.XMLDesc())
        self.assertEqual(('active', None, 'host-a'),
                         self.nova_says(self.server))
        if self.guard:
            self.assertEqual([], self.journaled('host-a'))

    def must_live_on(self):
        """The guest can be stopped, started and migrated."""
        self.domain.shutdown()
        self.act(self.server, 'os-stop')
        self.wait_for_server(self.server, lambda s: s['status'] == 'SHUTOFF')
        self.assertEqual({'host-a': 'shutoff'}, self.where(self.server))
        self.act(self.server, 'os-start')
        self.wait_for_server(self.server, lambda s: s['status'] == 'ACTIVE')
        job = self.begin_migration(self.server, 'host-b')
        job.complete()
        self.wait_until(
            lambda: self.nova_says(self.server).host == 'host-b',
            'it is on B')


@properties.twice
class LiveSnapshot(BlockJobTestCase):

    def begin(self):
        self.act(self.server, 'createImage', {'name': 'picture'})
        return self.wait_for_block_job('vda')

    def image(self):
        """The status of the image that is made, or None without one."""
        images = self.processes['host-a'].manager.image_api.get_all(
            context.get_admin_context())
        found = [image['status'] for image in images
                 if image['name'] == 'picture']
        return found[0] if found else None

    def must_be_undone(self):
        self.must_be_well()
        self.must(self.image() is None, WAITS, self.image())
        self.assertEqual([], os.listdir(self.snapshots))
        self.assertEqual(0, self.domain.frozen)

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


class CinderCalls(fixtures.Fixture):
    """Remembers what Cinder was told: [(method, argument, ...)]."""

    METHODS = ('roll_detaching', 'attachment_delete', 'attachment_complete',
               'migrate_volume_completion', 'update_snapshot_status')

    def _setUp(self):
        self.calls = []
        for name in self.METHODS:
            original = None if name == 'update_snapshot_status' else getattr(
                cinder.API, name)
            self.useFixture(fixtures.MockPatchObject(
                cinder.API, name, self._recorder(name, original)))

    def _recorder(self, name, original):
        def call(api, ctxt, *args, **kwargs):
            self.calls.append((name,) + args + tuple(kwargs.values()))
            if original is None:
                return None
            # a mock of Nova's fixtures takes no API, a function does
            own = () if isinstance(original, fixtures.fixture.Fixture) or (
                hasattr(original, 'side_effect')) else (api,)
            return original(*(own + (ctxt,) + args), **kwargs)
        return call

    def of(self, name):
        """The arguments of the calls of one method."""
        return [call[1:] for call in self.calls if call[0] == name]


class VolumeTestCase(BlockJobTestCase):

    def setUp(self):
        super(VolumeTestCase, self).setUp()
        self.enable_volumes()
        self.told = self.useFixture(CinderCalls())
        self.useFixture(fixtures.MockPatchObject(
            volume_drivers.LibvirtFakeVolumeDriver, 'get_config',
            _file_of_its_own(
                volume_drivers.LibvirtFakeVolumeDriver.get_config)))
        self.attach_volume(self.server)
        self.wait_until(lambda: self.told.of('attachment_complete'),
                        'Cinder is told that the volume is attached')
        self.attachment = self.attachments(OLD)

    @staticmethod
    def _of(bdm):
        return bdm.volume_id, bdm.attachment_id

    def attachments(self, volume_id):
        return releases.volume_attachments(self.cinder, volume_id)

    def mapped(self):
        """[(volume, attachment)] that Nova has for the guest."""
        return [self._of(bdm) for bdm in self._volume_bdms(self.server)]

    def source(self):
        """The volume that the guest really uses."""
        return os.path.basename(self.domain.chain('vdb')[0])


@properties.twice
class VolumeSwap(VolumeTestCase):

    def begin(self):
        """Swap volumes, as a migration of Cinder's does."""
        get = cinder.API.get
        own = bool(not hasattr(get, 'side_effect'))
        self.useFixture(fixtures.MockPatchObject(
            cinder.API, 'get', lambda api, ctxt, volume_id, *args, **kwargs:
            dict(get(*((api,) if own else ()) + (ctxt, volume_id)),
                 migration_status='migrating')))
        self.api.put_server_volume(self.server['id'], OLD, NEW)
        return self.wait_for_block_job('vdb')

    def begin_without_cinder(self):
        """Swap volumes, as users could ask Nova for until 2025."""
        ctxt = context.get_admin_context()
        attachment = cinder.API().attachment_create(
            ctxt, NEW, self.server['id'])['id']
        rpcapi.ComputeAPI().swap_volume(
            ctxt, self.instance(self.server), OLD, NEW, attachment)
        return self.wait_for_block_job('vdb')

    def must_be_undone(self):
        self.must_be_well()
        self.must(not self.attachments(NEW), WAITS, self.attachments(NEW))
        self.assertIn((OLD,), self.told.of('roll_detaching'))
        self.assertEqual([(OLD,) + tuple(self.attachment)], self.mapped())
        self.assertEqual(OLD, self.source())

    def must_be_done(self):
        self.must_be_well()
        self.must(self.mapped() == [(NEW,) + tuple(self.attachments(NEW))],
                  NOT_AS_USED, (self.mapped(), self.source()))
        self.assertEqual(1, len(self.attachments(NEW)))
        self.assertEqual(set(), self.attachments(OLD))
        self.assertEqual(NEW, self.source())

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
class AssistedSnapshot(VolumeTestCase):
    """Cinder lets Nova take and remove snapshots of a volume in files."""

    def setUp(self):
        super(AssistedSnapshot, self).setUp()
        self.useFixture(fixtures.MockPatchObject(
            driver.LibvirtDriver, '_volume_refresh_connection_info'))
        self.domain.consist_of('vdb', ['snap-2', 'snap-1', 'base'])

    def begin_deletion(self):
        self.api.api_delete(
            '/os-assisted-volume-snapshots/%s?delete_info=%s' % (
                SNAPSHOT, '{"volume_id":"%s","type":"qcow2",'
                '"file_to_merge":"snap-1","merge_target_file":"base"}' % OLD))
        return self.wait_for_block_job('vdb')

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
        stop = self.stop_at('host-a', driver.LibvirtDriver,
                            '_volume_snapshot_update_status')
        self.api.api_post('/os-assisted-volume-snapshots', {'snapshot': {
            'volume_id': OLD, 'create_info': {
                'snapshot_id': SNAPSHOT, 'type': 'qcow2',
                'new_file': 'snap-3'}}})
        stop.wait()
        self.assertEqual('snap-3', self.domain.chain('vdb')[0])
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
class ForeignBlockJob(BlockJobTestCase):
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
