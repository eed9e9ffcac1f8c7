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

"""The operations on a guest's disks that nova-compute is killed in."""

import os

import fixtures

from nova import context
from nova.virt.libvirt import utils
from nova.virt.libvirt.volume import volume as volume_drivers
from nova.volume import cinder

from tests.functional.crash_points import judging
from tests.functional.crash_points import operations
from tests.functional import disk_operations
from tests.functional import releases

OLD = disk_operations.OLD
NEW = disk_operations.NEW


class BlockOperation(operations.LiveMigration):
    """QEMU copies a disk of a guest on A."""

    SIDES = {operations.SOURCE: 'host-a'}
    DISK = 'vda'

    def job(self):
        domain = self.test.world.hypervisors['host-a'].domains.get(
            self.test.server['id'])
        return domain.block_jobs.get(self.DISK) if domain else None

    def go_on(self):
        if self.job() is not None:
            self.job().copied()
        return self.has_ended()

    def has_ended(self):
        raise NotImplementedError()

    def world_goes_on(self, world):
        job = self.job()
        if job is None:
            return
        if world == operations.FINISHES:
            job.copied()
        elif world == operations.FAILS:
            self.test.world.hypervisors['host-a'].domains[
                self.test.server['id']].cancel_block_job(self.DISK)

    def unowned_job_ends(self):
        """It goes on for ever: QEMU mirrors until someone ends it."""


class LiveSnapshot(BlockOperation):
    """A live snapshot."""

    NAME = 'live-snapshot'

    @staticmethod
    def set_up(test):
        test.useFixture(releases.images_wait_for_their_data())
        test.snapshots = test.useFixture(fixtures.TempDir()).path
        test.flags(snapshots_directory=test.snapshots, group='libvirt')
        disk_operations.BlockJobTestCase._stub_images(test)
        # nor does QEMU make one here
        test.useFixture(fixtures.MockPatch('nova.privsep.path.chown'))
        test.useFixture(fixtures.MockPatchObject(
            utils, 'extract_snapshot',
            lambda source, source_format, path, *args: open(
                path, 'w').close()))

    def begin(self):
        self.test.act(self.test.server, 'createImage', {'name': 'picture'})

    def has_ended(self):
        return self.test.nova_says(self.test.server).task_state is None

    def _images(self):
        images = self.test.processes['host-a'].manager.image_api.get_all(
            context.get_admin_context())
        return [image for image in images if image['name'] == 'picture']

    def violations(self):
        found = []
        for image in self._images():
            if image['status'] != 'active':
                found.append(judging.Violation(
                    'R4', 'the image is %s for ever' % image['status']))
        if os.listdir(self.test.snapshots):
            found.append(judging.Violation(
                'R4', 'temporary files: %s' % os.listdir(
                    self.test.snapshots)))
        for host, domain in self.test.world.domains(self.test.server['id']):
            if domain.frozen:
                found.append(judging.Violation(
                    'R4', 'its file systems are frozen on %s' % host))
        return found

    def clean_up(self):
        for image in self._images():
            self.test.processes['host-a'].manager.image_api.delete(
                context.get_admin_context(), image['id'])


class VolumeSwap(BlockOperation):
    """A volume is swapped for another one, for a migration of Cinder's."""

    NAME = 'volume-swap'
    DISK = 'vdb'

    def __init__(self, test):
        super(VolumeSwap, self).__init__(test)
        self._begun = False

    @staticmethod
    def set_up(test):
        disk_operations.BlockJobTestCase._stub_images(test)
        test.useFixture(fixtures.MockPatchObject(
            volume_drivers.LibvirtFakeVolumeDriver, 'get_config',
            disk_operations._file_of_its_own(
                volume_drivers.LibvirtFakeVolumeDriver.get_config)))
        get = cinder.API.get
        own = not hasattr(get, 'side_effect')
        test.useFixture(fixtures.MockPatchObject(
            cinder.API, 'get', lambda api, ctxt, volume_id, *args, **kwargs:
            dict(get(*((api,) if own else ()) + (ctxt, volume_id)),
                 migration_status='migrating')))

    def begin(self):
        self.test.api.put_server_volume(self.test.server['id'], OLD, NEW)

    def has_ended(self):
        self._begun = self._begun or self.job() is not None
        return self._begun and self.job() is None

    def violations(self):
        mapped = {(bdm.volume_id, bdm.attachment_id)
                  for bdm in self.test._volume_bdms(self.test.server)}
        attached = {
            (volume, name) for volume, attachments in
            self.test.cinder.volume_to_attachment.items()
            for name, attachment in attachments.items()
            if attachment['instance_uuid'] == self.test.server['id']}
        found = []
        if mapped != attached:
            found.append(judging.Violation(
                'R4', 'attachments %s, and the mapping has %s' % (
                    sorted(attached), sorted(mapped))))
        for _, domain in self.test.world.domains(self.test.server['id']):
            used = os.path.basename(domain.chain(self.DISK)[0])
            if used not in [volume for volume, _ in mapped]:
                found.append(judging.Violation(
                    'R3', 'the guest uses volume %s, and the mapping has %s' %
                    (used, sorted(mapped))))
        return found


OPERATIONS = {operation.NAME: operation
              for operation in (LiveSnapshot, VolumeSwap)}
