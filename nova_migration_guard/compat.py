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
when its release is in the known range and every seam has one of the
signatures that the guard was written for. A distribution that backports a
change keeps the release number, so the signatures decide within the range.
"""

import collections
import importlib
import inspect
import re

# Train's 20.0 is the first release with both named bugs, 2026.2 is the newest
# that the guard was tested on.
FIRST_RELEASE = (20, 0)
LAST_RELEASE = (34,)

DRIVER = 'libvirt.LibvirtDriver'

Seam = collections.namedtuple('Seam', 'module name signatures')

_MANAGER = 'nova.compute.manager'
_TRACKER = 'nova.compute.resource_tracker'
_DRIVER = 'nova.virt.libvirt.driver'

# Signatures are the names of the parameters, in order, one tuple a variant.
SEAMS = (
    # service_ref: 27.0.0 (Service.start hands over its own record)
    Seam(_MANAGER, 'ComputeManager.init_host',
         (('self',), ('self', 'service_ref'))),
    Seam(_MANAGER, 'ComputeManager.init_virt_events', (('self',),)),
    Seam(_MANAGER, 'ComputeManager.cleanup_host', (('self',),)),
    Seam(_MANAGER, 'ComputeManager._init_instance',
         (('self', 'context', 'instance'),)),
    Seam(_MANAGER, 'ComputeManager.live_migration',
         (('self', 'context', 'dest', 'instance', 'block_migration',
           'migration', 'migrate_data'),)),
    Seam(_MANAGER, 'ComputeManager.live_migration_abort',
         (('self', 'context', 'instance', 'migration_id'),)),
    Seam(_MANAGER, 'ComputeManager._post_live_migration',
         (('self', 'ctxt', 'instance', 'dest', 'block_migration',
           'migrate_data', 'source_bdms'),)),
    # pre_live_migration: 24.2.1, bug 1944619
    Seam(_MANAGER, 'ComputeManager._rollback_live_migration',
         (('self', 'context', 'instance', 'dest', 'migrate_data',
           'migration_status', 'source_bdms'),
          ('self', 'context', 'instance', 'dest', 'migrate_data',
           'migration_status', 'source_bdms', 'pre_live_migration'))),
    # migr_ctxt: 21.0.0
    Seam(_MANAGER, 'ComputeManager._live_migration_cleanup_flags',
         (('self', 'migrate_data'), ('self', 'migrate_data', 'migr_ctxt'))),
    Seam(_MANAGER, 'ComputeManager._revert_allocation',
         (('self', 'context', 'instance', 'migration'),)),
    Seam(_MANAGER, 'ComputeManager.terminate_instance',
         (('self', 'context', 'instance', 'bdms'),)),
    Seam(_MANAGER, 'ComputeManager.swap_volume',
         (('self', 'context', 'old_volume_id', 'new_volume_id', 'instance',
           'new_attachment_id'),)),
    Seam(_MANAGER, 'ComputeManager._swap_volume',
         (('self', 'context', 'instance', 'bdm', 'connector',
           'old_volume_id', 'new_volume', 'resize_to', 'new_attachment_id',
           'is_cinder_migration'),)),
    Seam(_TRACKER, 'ResourceTracker._update_usage_from_instances',
         (('self', 'context', 'instances', 'nodename'),)),
    Seam(_TRACKER, 'ResourceTracker._update_usage_from_migrations',
         (('self', 'context', 'migrations', 'nodename'),)),
    Seam(_TRACKER, 'ResourceTracker._update_usage_from_migration',
         (('self', 'context', 'instance', 'migration', 'nodename'),)),
    Seam(_TRACKER, 'ResourceTracker._update_usage_from_instance',
         (('self', 'context', 'instance', 'nodename', 'is_removed'),)),
    Seam(_DRIVER, 'LibvirtDriver.init_host', (('self', 'host'),)),
    Seam(_DRIVER, 'LibvirtDriver.pre_live_migration',
         (('self', 'context', 'instance', 'block_device_info', 'network_info',
           'disk_info', 'migrate_data'),)),
    Seam(_DRIVER, 'LibvirtDriver.live_migration',
         (('self', 'context', 'instance', 'dest', 'post_method',
           'recover_method', 'block_migration', 'migrate_data'),)),
    Seam(_DRIVER, 'LibvirtDriver._live_migration_operation',
         (('self', 'context', 'instance', 'dest', 'block_migration',
           'migrate_data', 'guest', 'device_names'),)),
    Seam(_DRIVER, 'LibvirtDriver._live_migration_uri', (('dest',),)),
    Seam(_DRIVER, 'LibvirtDriver.snapshot',
         (('self', 'context', 'instance', 'image_id', 'update_task_state'),)),
    Seam(_DRIVER, 'LibvirtDriver._live_snapshot',
         (('self', 'context', 'instance', 'guest', 'disk_path', 'out_path',
           'source_format', 'image_format', 'image_meta'),)),
    Seam(_DRIVER, 'LibvirtDriver._set_quiesced',
         (('self', 'context', 'instance', 'image_meta', 'quiesced'),)),
    Seam(_DRIVER, 'LibvirtDriver.swap_volume',
         (('self', 'context', 'old_connection_info', 'new_connection_info',
           'instance', 'mountpoint', 'resize_to'),)),
    # disk_dev: 21.0.0; hw_firmware_type: 21.0.0 to 28.x
    Seam(_DRIVER, 'LibvirtDriver._swap_volume',
         (('self', 'guest', 'disk_path', 'conf', 'resize_to'),
          ('self', 'guest', 'disk_dev', 'conf', 'resize_to',
           'hw_firmware_type'),
          ('self', 'guest', 'disk_dev', 'conf', 'resize_to'))),
    # destroy_secrets: 24.0.0; force: 28.0.0 and stable releases before it
    Seam(_DRIVER, 'LibvirtDriver._disconnect_volume',
         (('self', 'context', 'connection_info', 'instance', 'encryption'),
          ('self', 'context', 'connection_info', 'instance', 'encryption',
           'destroy_secrets'),
          ('self', 'context', 'connection_info', 'instance', 'encryption',
           'destroy_secrets', 'force'))),
    Seam(_DRIVER, 'LibvirtDriver.volume_snapshot_create',
         (('self', 'context', 'instance', 'volume_id', 'create_info'),)),
    Seam(_DRIVER, 'LibvirtDriver.volume_snapshot_delete',
         (('self', 'context', 'instance', 'volume_id', 'snapshot_id',
           'delete_info'),)),
    Seam(_DRIVER, 'LibvirtDriver._volume_refresh_connection_info',
         (('self', 'context', 'instance', 'volume_id'),)),
    Seam('nova.compute.rpcapi', 'ComputeAPI.get_console_output',
         (('self', 'ctxt', 'instance', 'tail_length'),)),
    Seam('nova.compute.rpcapi', 'ComputeAPI.get_instance_diagnostics',
         (('self', 'ctxt', 'instance'),)),
    Seam('nova.compute.rpcapi',
         'ComputeAPI.rollback_live_migration_at_destination',
         (('self', 'ctxt', 'instance', 'host', 'destroy_disks',
           'migrate_data'),)),
    Seam('nova.virt.libvirt.host', 'Host._connect',
         (('self', 'uri', 'read_only'),)),
    Seam('nova.pci.manager', 'PciDevTracker.claim_instance',
         (('self', 'context', 'pci_requests', 'instance_numa_topology'),)),
    Seam('nova.objects.instance', 'InstanceList.get_by_host',
         (('context', 'host', 'expected_attrs', 'use_slave'),)),
    Seam('nova.objects.instance', 'InstanceList.get_by_filters',
         (('context', 'filters', 'sort_key', 'sort_dir', 'limit', 'marker',
           'expected_attrs', 'use_slave', 'sort_keys', 'sort_dirs'),)),
    Seam('nova.objects.instance_action',
         'InstanceActionList.get_by_instance_uuid',
         (('context', 'instance_uuid', 'limit', 'marker', 'filters'),)),
    Seam('nova.objects.instance_action',
         'InstanceActionEventList.get_by_action',
         (('context', 'action_id'),)),
    Seam('nova.objects.migration', 'MigrationList.get_by_filters',
         (('context', 'filters', 'sort_keys', 'sort_dirs', 'limit',
           'marker'),)),
)


class UnsupportedNova(Exception):
    """This Nova is not one that the guard knows how to guard."""


def _release():
    from nova import version
    return version.version_string()


def _fault_of_release(release):
    match = re.match(r'(\d+)\.(\d+)', release)
    if not match:
        return 'nova calls its release "%s", which is no number' % release
    number = tuple(int(part) for part in match.groups())
    if number < FIRST_RELEASE or number[:1] > LAST_RELEASE:
        return ('nova %s is not among the known releases, %s to %s.x' % (
            release, '.'.join(map(str, FIRST_RELEASE)), LAST_RELEASE[0]))
    return None


def signature_of(function):
    """The names of a function's parameters, below decorators.

    :param function: a function, bound or not
    :returns: a tuple of names; without ``cls`` for a class method
    """
    return tuple(inspect.signature(function).parameters)


def find(seam):
    """The function that a seam names, as it is in this process now.

    :param seam: a :class:`Seam`
    :raises UnsupportedNova: when the module or the attribute is not there
    """
    target = '%s:%s' % (seam.module, seam.name)
    try:
        found = importlib.import_module(seam.module)
    except ImportError as e:
        raise UnsupportedNova('%s cannot be imported: %s' % (target, e))
    for name in seam.name.split('.'):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise UnsupportedNova('%s is not there' % target)
    return found


def _fault_of_seam(seam):
    try:
        signature = signature_of(find(seam))
    except UnsupportedNova as e:
        return str(e)
    if signature in seam.signatures:
        return None
    return '%s:%s has the signature (%s), known: %s' % (
        seam.module, seam.name, ', '.join(signature),
        ' or '.join('(%s)' % ', '.join(known) for known in seam.signatures))


def check(conf):
    """Decide whether the Nova of this process is one that can be guarded.

    :param conf: the process's ``oslo_config.cfg.ConfigOpts``, for the
        compute driver
    :returns: the release of Nova, for example '34.0.0'
    :raises UnsupportedNova: with every fault that was found
    """
    release = _release()
    faults = [_fault_of_release(release)]
    if conf.compute_driver != DRIVER:
        faults.append('compute_driver is %s, the guard knows %s only' % (
            conf.compute_driver, DRIVER))
    faults.extend(_fault_of_seam(seam) for seam in SEAMS)
    faults = [fault for fault in faults if fault]
    if faults:
        raise UnsupportedNova('nova %s does not fit: %s' % (
            release, '; '.join(faults)))
    return release
