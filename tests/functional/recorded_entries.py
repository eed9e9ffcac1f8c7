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

"""An entry of the journal as one release of Nova writes it.

``python -m tests.functional.recorded_entries`` in the environment of a
release writes ``data/journal-RELEASE/UUID.json``. Those that are there were
written that way.
"""

import os

from nova import objects
from nova.objects import migrate_data as migrate_data_obj
from nova import version

from nova_migration_guard import journal
from nova_migration_guard.nova_host import plan

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data')
HOST = 'host-a'
INSTANCE = '1f0a3c52-6b5e-4c43-9a0e-2d7c54b1e001'
MIGRATION = '1f0a3c52-6b5e-4c43-9a0e-2d7c54b1e002'
VOLUME = '1f0a3c52-6b5e-4c43-9a0e-2d7c54b1e003'
ATTACHMENT = '1f0a3c52-6b5e-4c43-9a0e-2d7c54b1e004'
PORT = '1f0a3c52-6b5e-4c43-9a0e-2d7c54b1e005'


def migrate_data():
    """What the source knows when libvirt is about to be asked."""
    return migrate_data_obj.LibvirtLiveMigrateData(
        is_shared_instance_path=False, is_shared_block_storage=False,
        is_volume_backed=False, block_migration=True, disk_over_commit=False,
        disk_available_mb=1024, image_type='default', filename='file',
        instance_relative_path=INSTANCE, graphics_listen_addr_vnc='127.0.0.1',
        graphics_listen_addr_spice='127.0.0.1', serial_listen_addr=None,
        serial_listen_ports=[], supported_perf_events=[],
        target_connect_addr=None, src_supports_native_luks=True,
        src_supports_numa_live_migration=True,
        bdms=[migrate_data_obj.LibvirtLiveMigrateBDMInfo(
            serial=VOLUME, bus='virtio', dev='vdb', type='disk',
            connection_info={'driver_volume_type': 'fake', 'data': {}})],
        vifs=[migrate_data_obj.VIFMigrateData(
            port_id=PORT, host='host-b', vnic_type='normal',
            vif_type='ovs', profile={}, vif_details={})],
        migration=objects.Migration(
            uuid=MIGRATION, instance_uuid=INSTANCE, source_compute=HOST,
            dest_compute='host-b', status='running',
            migration_type='live-migration'),
        old_vol_attachment_ids={VOLUME: ATTACHMENT})


def source_bdms():
    return objects.BlockDeviceMappingList(objects=[
        objects.BlockDeviceMapping(
            source_type='volume', destination_type='volume',
            device_name='/dev/vdb', volume_id=VOLUME,
            attachment_id=ATTACHMENT, instance_uuid=INSTANCE,
            connection_info='{}')])


def write():
    """Write the entry of the release that is installed."""
    release = version.version_string()
    prepared = plan.Plans.prepared(migrate_data(), source_bdms())
    journal.Journal(os.path.join(FOLDER, 'journal-' + release), HOST).begin(
        journal.Entry(
            operation=journal.LIVE_MIGRATION, phase=journal.STARTED,
            instance=INSTANCE, migration=MIGRATION, source=HOST,
            destination='host-b', vm_state='active', request_id='req-1',
            begun=1.0, block_migration=True, **prepared))


if __name__ == '__main__':
    objects.register_all()
    write()
