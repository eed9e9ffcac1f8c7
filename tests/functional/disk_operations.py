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


"""What the tests of operations on disks have in common."""

import os

import fixtures

from nova.compute import rpcapi
from nova import context
from nova.virt.libvirt import driver
from nova.virt.libvirt import utils
from nova.virt.libvirt.volume import volume as volume_drivers
from nova.volume import cinder

from tests.functional import cloud
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


class LiveSnapshotTestCase(BlockJobTestCase):

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


class VolumeSwapTestCase(VolumeTestCase):

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


class AssistedSnapshotTestCase(VolumeTestCase):
    """Cinder lets Nova take and remove snapshots of a volume in files."""

    def setUp(self):
        super(AssistedSnapshotTestCase, self).setUp()
        self.useFixture(fixtures.MockPatchObject(
            driver.LibvirtDriver, '_volume_refresh_connection_info',
            lambda *args: self.told.calls.append(('refresh',))))
        #: of the volume's snapshot, as Cinder has it
        self.snapshot_status = 'available'
        self.useFixture(fixtures.MockPatchObject(
            cinder.API, 'get_snapshot',
            lambda *args: {'status': self.snapshot_status}))
        self.domain.consist_of('vdb', ['snap-2', 'snap-1', 'base'])

    def begin_deletion(self):
        self.api.api_delete(
            '/os-assisted-volume-snapshots/%s?delete_info=%s' % (
                SNAPSHOT, '{"volume_id":"%s","type":"qcow2",'
                '"file_to_merge":"snap-1","merge_target_file":"base"}' % OLD))
        return self.wait_for_block_job('vdb')

    def begin_creation(self):
        """Let libvirt take a snapshot, of which Cinder is not told yet."""
        stop = self.stop_at('host-a', driver.LibvirtDriver,
                            '_volume_snapshot_update_status')
        self.api.api_post('/os-assisted-volume-snapshots', {'snapshot': {
            'volume_id': OLD, 'create_info': {
                'snapshot_id': SNAPSHOT, 'type': 'qcow2',
                'new_file': 'snap-3'}}})
        stop.wait()
        self.assertEqual('snap-3', self.domain.chain('vdb')[0])
