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

"""The Nova releases that the guard knows, and what it needs each to look like.

A *seam* is a function of Nova that the guard patches or calls. A Nova fits
when its release is in the known range and every seam has one of the forms
that the guard was written for. A distribution that backports a change keeps
the release number, so the forms decide within the range, and the number only
says what is worth a line in the log.
"""

import collections
import re

#: One major release of Nova.
#:
#: number: its first part; name: what OpenStack calls it; tested: the point
#: releases that the functional tests run on, the newest last; pythons: the
#: oldest and the newest Python that they run on; backends: how its
#: nova-compute may run its threads.
Series = collections.namedtuple('Series', 'number name tested pythons '
                                'backends')

EVENTLET = ('eventlet',)
EITHER = ('eventlet', 'threading')

# Train's 20.0 is the first release with both named bugs, 2026.2 is the newest
# that the guard was tested on.
SERIES = (
    Series(20, 'Train', ('20.1.1',), ('3.7', '3.8'), EVENTLET),
    Series(21, 'Ussuri', ('21.1.1', '21.2.4'), ('3.7', '3.8'), EVENTLET),
    Series(22, 'Victoria', ('22.4.0',), ('3.7', '3.8'), EVENTLET),
    Series(23, 'Wallaby', ('23.2.2',), ('3.8', '3.9'), EVENTLET),
    Series(24, 'Xena', ('24.2.1',), ('3.8', '3.9'), EVENTLET),
    Series(25, 'Yoga', ('25.3.0',), ('3.8', '3.9'), EVENTLET),
    Series(26, 'Zed', ('26.3.0',), ('3.8', '3.10'), EVENTLET),
    Series(27, '2023.1', ('27.5.1',), ('3.8', '3.10'), EVENTLET),
    Series(28, '2023.2', ('28.3.1',), ('3.8', '3.11'), EVENTLET),
    Series(29, '2024.1', ('29.2.0',), ('3.8', '3.11'), EVENTLET),
    Series(30, '2024.2', ('30.3.0',), ('3.9', '3.12'), EVENTLET),
    Series(31, '2025.1', ('31.3.1',), ('3.9', '3.12'), EVENTLET),
    Series(32, '2025.2', ('32.2.1',), ('3.10', '3.13'), EVENTLET),
    # native threads are there to be tried in 33, and the default from 34 on
    Series(33, '2026.1', ('33.0.2',), ('3.10', '3.12'), EITHER),
    Series(34, '2026.2', ('34.0.0',), ('3.11', '3.13'), EITHER),
)

#: What a function looks like, and from where on.
#:
#: parameters: their names, in order; since: the first release that has it, of
#: each series in which it came by a point release (later series have it from
#: their start), or nothing for all; change: what brought it.
Form = collections.namedtuple('Form', 'parameters since change')

#: A function that the guard patches or calls.
#:
#: forms: those that are known, the oldest first; upstream: the change of Nova
#: that makes patching it needless, or part of the patch, or None.
Seam = collections.namedtuple('Seam', 'module name forms upstream')


def _form(parameters, since=(), change=''):
    return Form(tuple(parameters.split()), since, change)


def _seam(module, name, *forms, **upstream):
    return Seam(module, name, tuple(
        _form(form) if isinstance(form, str) else form for form in forms),
        upstream.get('upstream'))


_MANAGER = 'nova.compute.manager'
_TRACKER = 'nova.compute.resource_tracker'
_DRIVER = 'nova.virt.libvirt.driver'
_REPORT = 'nova.scheduler.client.report'

_RESET = ('20.2.0, bug 1753676: the start aborts a running job, and resets '
          'the instance whatever comes of it')
_EVACUATION = ('21.2.0, 22.1.0, 23.0.0, bug 1896463: finish_evacuation, for '
               'evacuations alone')
_ACCELERATORS = 'blueprint nova-cyborg-interaction'
_SHARES = 'blueprint libvirt-virtiofs-attach-manila-shares'

SEAMS = (
    _seam(_MANAGER, 'ComputeManager.init_host', 'self',
          _form('self service_ref',
                ('27.0.0',), 'Service.start hands over its own record')),
    _seam(_MANAGER, 'ComputeManager.init_virt_events', 'self',
          upstream=_RESET),
    _seam(_MANAGER, 'ComputeManager.cleanup_host', 'self'),
    _seam(_MANAGER, 'ComputeManager._cleanup_live_migrations_in_pool',
          'self'),
    _seam(_MANAGER, 'ComputeManager._init_instance',
          'self context instance',
          upstream=_RESET),
    _seam(_MANAGER, 'ComputeManager.live_migration',
          'self context dest instance block_migration migration migrate_data'),
    _seam(_MANAGER, 'ComputeManager.live_migration_abort',
          'self context instance migration_id'),
    _seam(_MANAGER, 'ComputeManager._post_live_migration',
          'self ctxt instance dest block_migration migrate_data source_bdms'),
    _seam(_MANAGER, 'ComputeManager._rollback_live_migration',
          'self context instance dest migrate_data migration_status '
          'source_bdms',
          _form('self context instance dest migrate_data migration_status '
                'source_bdms pre_live_migration',
                ('24.1.1', '25.0.1'), 'bug 1944619')),
    _seam(_MANAGER, 'ComputeManager._live_migration_cleanup_flags',
          'self migrate_data',
          _form('self migrate_data migr_ctxt',
                ('21.0.0',), 'live migration with persistent memory')),
    _seam(_MANAGER, 'ComputeManager._revert_allocation',
          'self context instance migration'),
    _seam(_MANAGER, 'ComputeManager.terminate_instance',
          'self context instance bdms'),
    _seam(_MANAGER, 'ComputeManager.swap_volume',
          'self context old_volume_id new_volume_id instance '
          'new_attachment_id'),
    _seam(_MANAGER, 'ComputeManager._swap_volume',
          'self context instance bdm connector old_volume_id new_volume '
          'resize_to new_attachment_id is_cinder_migration'),
    _seam(_TRACKER, 'ResourceTracker._update_usage_from_instances',
          'self context instances nodename',
          upstream=_EVACUATION),
    _seam(_TRACKER, 'ResourceTracker._update_usage_from_migrations',
          'self context migrations nodename',
          upstream=_EVACUATION),
    _seam(_TRACKER, 'ResourceTracker._update_usage_from_migration',
          'self context instance migration nodename'),
    _seam(_TRACKER, 'ResourceTracker._update_usage_from_instance',
          'self context instance nodename is_removed'),
    _seam(_DRIVER, 'LibvirtDriver.init_host', 'self host'),
    _seam(_DRIVER, 'LibvirtDriver.pre_live_migration',
          'self context instance block_device_info network_info disk_info '
          'migrate_data'),
    _seam(_DRIVER, 'LibvirtDriver.live_migration',
          'self context instance dest post_method recover_method '
          'block_migration migrate_data'),
    _seam(_DRIVER, 'LibvirtDriver._live_migration_operation',
          'self context instance dest block_migration migrate_data guest '
          'device_names'),
    _seam(_DRIVER, 'LibvirtDriver._live_migration_monitor',
          'self context instance guest dest post_method recover_method '
          'block_migration migrate_data finish_event disk_paths',
          _form('self context instance guest dest post_method '
                'recover_method block_migration migrate_data future '
                'disk_paths',
                ('32.0.0',), 'futurist in place of eventlet')),
    _seam(_DRIVER, 'LibvirtDriver._live_migration_copy_disk_paths',
          'self context instance guest'),
    _seam(_DRIVER, 'LibvirtDriver._live_migration_uri', 'dest'),
    _seam(_DRIVER, 'LibvirtDriver.instance_on_disk', 'self instance'),
    _seam(_DRIVER, 'LibvirtDriver.snapshot',
          'self context instance image_id update_task_state'),
    _seam(_DRIVER, 'LibvirtDriver._live_snapshot',
          'self context instance guest disk_path out_path source_format '
          'image_format image_meta'),
    _seam(_DRIVER, 'LibvirtDriver._set_quiesced',
          'self context instance image_meta quiesced'),
    _seam(_DRIVER, 'LibvirtDriver.swap_volume',
          'self context old_connection_info new_connection_info instance '
          'mountpoint resize_to'),
    _seam(_DRIVER, 'LibvirtDriver._swap_volume',
          'self guest disk_path conf resize_to',
          _form('self guest disk_dev conf resize_to hw_firmware_type',
                ('21.0.0',), 'the disk is named by its device'),
          _form('self guest disk_dev conf resize_to',
                ('29.0.2',), 'bug 1997352')),
    _seam(_DRIVER, 'LibvirtDriver._disconnect_volume',
          'self context connection_info instance encryption',
          _form('self context connection_info instance encryption '
                'destroy_secrets',
                ('23.1.0',), 'bug 1905701'),
          _form('self context connection_info instance encryption '
                'destroy_secrets force',
                ('25.2.0', '26.2.0', '27.1.0'),
                'bug 2004555 (CVE-2023-2088)')),
    _seam(_DRIVER, 'LibvirtDriver.power_on',
          'self context instance network_info block_device_info',
          _form('self context instance network_info block_device_info '
                'accel_info',
                ('21.0.0',), _ACCELERATORS),
          _form('self context instance network_info block_device_info '
                'accel_info share_info',
                ('31.0.0',), _SHARES)),
    _seam(_DRIVER, 'LibvirtDriver.reboot',
          'self context instance network_info reboot_type block_device_info '
          'bad_volumes_callback',
          _form('self context instance network_info reboot_type '
                'block_device_info bad_volumes_callback accel_info',
                ('21.0.0',), _ACCELERATORS),
          _form('self context instance network_info reboot_type '
                'block_device_info bad_volumes_callback accel_info '
                'share_info',
                ('31.0.0',), _SHARES)),
    _seam(_DRIVER, 'LibvirtDriver.resume',
          'self context instance network_info block_device_info',
          _form('self context instance network_info block_device_info '
                'share_info',
                ('31.0.0',), _SHARES)),
    _seam(_DRIVER, 'LibvirtDriver.resume_state_on_host_boot',
          'self context instance network_info block_device_info',
          _form('self context instance network_info share_info '
                'block_device_info',
                ('31.0.0',), _SHARES)),
    _seam(_DRIVER, 'LibvirtDriver.rescue',
          'self context instance network_info image_meta rescue_password',
          _form('self context instance network_info image_meta '
                'rescue_password block_device_info',
                ('21.0.0',), 'a rescue keeps all disks'),
          _form('self context instance network_info image_meta '
                'rescue_password block_device_info share_info',
                ('31.0.0',), _SHARES)),
    _seam(_DRIVER, 'LibvirtDriver.spawn',
          'self context instance image_meta injected_files admin_password '
          'allocations network_info block_device_info power_on',
          _form('self context instance image_meta injected_files '
                'admin_password allocations network_info block_device_info '
                'power_on accel_info',
                ('21.0.0',), _ACCELERATORS)),
    _seam(_DRIVER, 'LibvirtDriver.unpause', 'self instance'),
    _seam(_DRIVER, 'LibvirtDriver.cleanup',
          'self context instance network_info block_device_info '
          'destroy_disks migrate_data destroy_vifs',
          _form('self context instance network_info block_device_info '
                'destroy_disks migrate_data destroy_vifs destroy_secrets',
                ('23.1.0',), 'bug 1905701')),
    _seam(_DRIVER, 'LibvirtDriver.attach_interface',
          'self context instance image_meta vif'),
    _seam(_DRIVER, 'LibvirtDriver.get_volume_connector', 'self instance'),
    _seam(_DRIVER, 'LibvirtDriver.check_instance_shared_storage_local',
          'self context instance'),
    _seam(_DRIVER, 'LibvirtDriver.check_instance_shared_storage_cleanup',
          'self context data'),
    _seam(_DRIVER, 'LibvirtDriver.volume_snapshot_create',
          'self context instance volume_id create_info'),
    _seam(_DRIVER, 'LibvirtDriver.volume_snapshot_delete',
          'self context instance volume_id snapshot_id delete_info'),
    _seam(_DRIVER, 'LibvirtDriver._volume_refresh_connection_info',
          'self context instance volume_id'),
    _seam('nova.compute.rpcapi', 'ComputeAPI.get_console_output',
          'self ctxt instance tail_length'),
    _seam('nova.compute.rpcapi', 'ComputeAPI.get_instance_diagnostics',
          'self ctxt instance'),
    _seam('nova.compute.rpcapi',
          'ComputeAPI.rollback_live_migration_at_destination',
          'self ctxt instance host destroy_disks migrate_data'),
    _seam('nova.compute.rpcapi', 'ComputeAPI.terminate_instance',
          'self ctxt instance bdms'),
    _seam('nova.compute.rpcapi', 'ComputeAPI.remove_volume_connection',
          'self ctxt instance volume_id host',
          _form('self ctxt instance volume_id host delete_attachment',
                ('29.0.0',), 'the other side deletes the attachment')),
    _seam('nova.compute.rpcapi', 'ComputeAPI.check_instance_shared_storage',
          'self ctxt instance data host',
          _form('self ctxt data instance host',
                ('23.0.0',), 'version 6.0 of the RPC API')),
    _seam(_REPORT, 'SchedulerReportClient.get_allocs_for_consumer',
          'self context consumer'),
    _seam(_REPORT, 'SchedulerReportClient.delete_allocation_for_instance',
          'self context uuid consumer_type',
          _form('self context uuid consumer_type force',
                ('24.0.0',), 'bug 1836754')),
    _seam('nova.virt.libvirt.host', 'Host._connect', 'self uri read_only'),
    _seam('nova.pci.manager', 'PciDevTracker.claim_instance',
          'self context pci_requests instance_numa_topology'),
    _seam('nova.objects.instance', 'InstanceList.get_by_host',
          'context host expected_attrs use_slave'),
    _seam('nova.objects.instance', 'InstanceList.get_by_filters',
          'context filters sort_key sort_dir limit marker expected_attrs '
          'use_slave sort_keys sort_dirs'),
    _seam('nova.objects.instance_action',
          'InstanceActionList.get_by_instance_uuid',
          'context instance_uuid limit marker filters'),
    _seam('nova.objects.instance_action',
          'InstanceActionEventList.get_by_action',
          'context action_id'),
    _seam('nova.objects.service', 'Service.get_by_compute_host',
          'context host use_slave'),
    _seam('nova.objects.migration', 'MigrationList.get_by_filters',
          'context filters sort_keys sort_dirs limit marker'),
)


class UnsupportedNova(Exception):
    """This Nova is not one that the guard knows how to guard."""


def numbers_of(release):
    return tuple(int(part) for part in re.findall(r'\d+', release)[:3])


def series_of(release):
    """The series of a release.

    :param release: for example '29.2.0'
    :returns: a :class:`Series`
    :raises UnsupportedNova: when the release is not in the known range
    """
    if not re.match(r'\d+\.\d+', release):
        raise UnsupportedNova(
            'nova calls its release "%s", which is no number' % release)
    for series in SERIES:
        if series.number == numbers_of(release)[0]:
            return series
    raise UnsupportedNova(
        'nova %s is not among the known releases, %d.0 to %d.x' % (
            release, SERIES[0].number, SERIES[-1].number))


def form_of(seam, release):
    """The form that a release has by the project's own Git history.

    :param seam: a :class:`Seam`
    :param release: for example '29.2.0'
    :returns: a :class:`Form`
    """
    numbers = numbers_of(release)
    for form in reversed(seam.forms):
        since = [numbers_of(first) for first in form.since]
        if not since or numbers[0] > since[-1][0] or any(
                first[0] == numbers[0] and first <= numbers
                for first in since):
            return form
    return seam.forms[0]
