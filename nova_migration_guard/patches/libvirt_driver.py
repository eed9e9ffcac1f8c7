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

"""Patches of ``nova.virt.libvirt.driver.LibvirtDriver``.

They would be needless once Nova itself keeps what an interrupted live
migration needs, and starts no guest that may run at its destination.
"""

from nova_migration_guard import guards
from nova_migration_guard import operations

MODULE = 'nova.virt.libvirt.driver'


def _guard_of(driver):
    # a driver that no ComputeManager has made has no guard
    manager = getattr(driver.virtapi, '_compute', None)
    return None if manager is None else guards.for_manager(manager)


def _blocks_of(driver):
    manager = getattr(driver.virtapi, '_compute', None)
    return None if manager is None else guards.blocks_of(manager)


def _live_migration(wrapped, driver, args, kwargs):
    """Write down what the destination has prepared."""
    def arguments(context, instance, dest, post_method, recover_method,
                  block_migration=False, migrate_data=None):
        return (context, instance, dest, post_method, recover_method,
                migrate_data)

    guardian = _guard_of(driver)
    if guardian is not None:
        context, instance, dest, post_method, recover_method, migrate_data = (
            arguments(*args, **kwargs))
        # ComputeManager hands them on with its method only
        bound = getattr(post_method, 'keywords', None) or {}
        try:
            guardian.operations.prepared(
                instance, migrate_data, bound.get('source_bdms'))
        except operations.Refused:
            return recover_method(context, instance, dest, migrate_data)
    return wrapped(*args, **kwargs)


def _instance_of(context, instance, *args, **kwargs):
    """The instance among the arguments of most of the driver's methods."""
    return instance


def _live_migration_operation(wrapped, driver, args, kwargs):
    """Write down that libvirt is about to be asked to migrate.

    Where it is not asked, Nova's monitor finds that no job runs and rolls
    back. From 33.0 an error would reach Nova after that, and leave the
    instance in ERROR.
    """
    guardian = _guard_of(driver)
    if guardian is not None:
        instance = _instance_of(*args, **kwargs)
        try:
            guardian.operations.started(instance)
        except operations.Refused:
            return None
        try:
            return wrapped(*args, **kwargs)
        except Exception:
            guardian.operations.operation_failed(instance)
            raise
    return wrapped(*args, **kwargs)


def _start(wrapped, driver, args, kwargs):
    """Start no guest of an instance that is held: it may run elsewhere."""
    guardian = _guard_of(driver)
    if guardian is not None:
        guardian.must_not_be_held(_instance_of(*args, **kwargs))
    return wrapped(*args, **kwargs)


def _unpause(wrapped, driver, args, kwargs):
    """Nor let one run again."""
    def instance_of(instance):
        return instance

    guardian = _guard_of(driver)
    if guardian is not None:
        guardian.must_not_be_held(instance_of(*args, **kwargs))
    return wrapped(*args, **kwargs)


def _snapshot(wrapped, driver, args, kwargs):
    """Write down that an image is being made, and for whom."""
    def arguments(context, instance, image_id, update_task_state):
        return context, instance, image_id

    blocks = _blocks_of(driver)
    if blocks is None:
        return wrapped(*args, **kwargs)
    return blocks.snapshot(
        *arguments(*args, **kwargs), run=lambda: wrapped(*args, **kwargs))


def _live_snapshot(wrapped, driver, args, kwargs):
    """Write down that libvirt is about to be asked to copy a disk."""
    def arguments(context, instance, guest, disk_path, out_path, *args,
                  **kwargs):
        return instance, disk_path, out_path

    blocks = _blocks_of(driver)
    if blocks is not None:
        blocks.copies_into(*arguments(*args, **kwargs))
    return wrapped(*args, **kwargs)


def _set_quiesced(wrapped, driver, args, kwargs):
    """Write down that file systems are about to be frozen."""
    def arguments(context, instance, image_meta, quiesced):
        return instance, quiesced

    blocks = _blocks_of(driver)
    if blocks is not None:
        instance, quiesced = arguments(*args, **kwargs)
        if quiesced:
            blocks.freezes(instance)
    return wrapped(*args, **kwargs)


def _swap_volume(wrapped, driver, args, kwargs):
    """Write down that a volume is about to be connected."""
    def arguments(context, old_connection_info, new_connection_info,
                  instance, mountpoint, resize_to):
        return (instance, mountpoint.rpartition('/')[2], old_connection_info,
                new_connection_info)

    blocks = _blocks_of(driver)
    if blocks is not None:
        blocks.swap_connects(*arguments(*args, **kwargs))
    return wrapped(*args, **kwargs)


def _copy_volume(wrapped, driver, args, kwargs):
    """Write down that libvirt is about to be asked to copy a volume.

    Nova hands the first three arguments over by position on every release,
    under names that differ.
    """
    blocks = _blocks_of(driver)
    if blocks is None:
        return wrapped(*args, **kwargs)
    guest, dev, conf = args[:3]
    return blocks.swap_copies(
        guest, dev, conf.source_path or conf.source_name,
        lambda watched: wrapped(watched, *args[1:], **kwargs))


def _volume_snapshot_create(wrapped, driver, args, kwargs):
    """Write down what Cinder waits for."""
    def arguments(context, instance, volume_id, create_info):
        return context, instance, volume_id, create_info

    blocks = _blocks_of(driver)
    if blocks is None:
        return wrapped(*args, **kwargs)
    return blocks.volume_snapshot_create(
        *arguments(*args, **kwargs), run=lambda: wrapped(*args, **kwargs))


def _volume_snapshot_delete(wrapped, driver, args, kwargs):
    """Write down what Cinder waits for."""
    def arguments(context, instance, volume_id, snapshot_id, delete_info):
        return context, instance, volume_id, snapshot_id, delete_info

    blocks = _blocks_of(driver)
    if blocks is None:
        return wrapped(*args, **kwargs)
    return blocks.volume_snapshot_delete(
        *arguments(*args, **kwargs), run=lambda: wrapped(*args, **kwargs))


PATCHES = {
    'LibvirtDriver.snapshot': _snapshot,
    'LibvirtDriver._live_snapshot': _live_snapshot,
    'LibvirtDriver._set_quiesced': _set_quiesced,
    'LibvirtDriver.swap_volume': _swap_volume,
    'LibvirtDriver._swap_volume': _copy_volume,
    'LibvirtDriver.volume_snapshot_create': _volume_snapshot_create,
    'LibvirtDriver.volume_snapshot_delete': _volume_snapshot_delete,
    'LibvirtDriver.live_migration': _live_migration,
    'LibvirtDriver._live_migration_operation': _live_migration_operation,
    'LibvirtDriver.power_on': _start,
    'LibvirtDriver.reboot': _start,
    'LibvirtDriver.resume': _start,
    'LibvirtDriver.resume_state_on_host_boot': _start,
    'LibvirtDriver.rescue': _start,
    'LibvirtDriver.spawn': _start,
    'LibvirtDriver.unpause': _unpause,
}
