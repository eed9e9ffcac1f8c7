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

"""Patches of ``nova.compute.manager.ComputeManager``.

They would be needless once Nova itself sees an unfinished live migration
through at start-up. Its own ``_reset_live_migration`` (20.2.0, bug 1753676)
asks for an abort and resets the instance whatever comes of it.
"""

from oslo_config import cfg

from nova_migration_guard import guards

CONF = cfg.CONF
MODULE = 'nova.compute.manager'


def _init_host(wrapped, manager, args, kwargs):
    options = CONF.migration_guard
    if not (options.enabled and options.startup_guard):
        return wrapped(*args, **kwargs)
    guardian = guards.create(manager)
    result = wrapped(*args, **kwargs)
    guardian.start_settler()
    return result


def _init_virt_events(wrapped, manager, args, kwargs):
    """Run the start-up pass.

    On every release init_host calls this once, with the driver up and before
    it handles the first instance. The driver reports no event to Nova yet,
    so that Nova sees nothing of a job that ends here.
    """
    guardian = guards.for_manager(manager)
    if guardian is not None:
        guardian.start_up()
    return wrapped(*args, **kwargs)


def _init_instance(wrapped, manager, args, kwargs):
    def instance_of(context, instance):
        return instance

    guardian = guards.for_manager(manager)
    if guardian is None or guardian.may_initialise(
            instance_of(*args, **kwargs)):
        return wrapped(*args, **kwargs)


def _graceful_shutdown(wrapped, manager, args, kwargs):
    """Empty the queue before Nova waits for what runs (33.0)."""
    guardian = guards.for_manager(manager)
    if guardian is not None:
        guardian.empty_queue()
    return wrapped(*args, **kwargs)


def _cleanup_host(wrapped, manager, args, kwargs):
    guardian = guards.for_manager(manager)
    if guardian is not None:
        guardian.empty_queue()
        guardian.stop()
    return wrapped(*args, **kwargs)


def _live_migration(wrapped, manager, args, kwargs):
    """Write a live migration down before it begins, or refuse it."""
    guardian = guards.for_manager(manager)
    if guardian is None or guardian.operations.may_begin(*args, **kwargs):
        return wrapped(*args, **kwargs)


def _live_migration_abort(wrapped, manager, args, kwargs):
    def arguments(context, instance, migration_id):
        return instance, migration_id

    result = wrapped(*args, **kwargs)
    guardian = guards.for_manager(manager)
    if guardian is not None:
        guardian.operations.aborted(*arguments(*args, **kwargs))
    return result


def _post_live_migration(wrapped, manager, args, kwargs):
    def arguments(ctxt, instance, dest, *args, **kwargs):
        return instance, dest

    guardian = guards.for_manager(manager)
    if guardian is None:
        return wrapped(*args, **kwargs)
    instance, dest = arguments(*args, **kwargs)
    return guardian.operations.post_migration(
        instance, dest, lambda: wrapped(*args, **kwargs))


def _rollback_live_migration(wrapped, manager, args, kwargs):
    def instance_of(context, instance, *args, **kwargs):
        return instance

    guardian = guards.for_manager(manager)
    if guardian is None:
        return wrapped(*args, **kwargs)
    return guardian.operations.rollback(
        instance_of(*args, **kwargs), lambda: wrapped(*args, **kwargs))


def _terminate_instance(wrapped, manager, args, kwargs):
    """Delete an instance where its guest is."""
    def arguments(context, instance, bdms):
        return context, instance, bdms

    guardian = guards.for_manager(manager)
    context, instance, bdms = arguments(*args, **kwargs)
    if guardian is None or instance.uuid not in guardian.held:
        return wrapped(*args, **kwargs)
    return guardian.delete(context, instance, bdms, wrapped)


def _swap_volume(wrapped, manager, args, kwargs):
    """See a volume swap through until Nova has written its end down."""
    def arguments(context, old_volume_id, new_volume_id, instance,
                  new_attachment_id):
        return instance, old_volume_id

    blocks = guards.blocks_of(manager)
    if blocks is None:
        return wrapped(*args, **kwargs)
    return blocks.swap(
        *arguments(*args, **kwargs), run=lambda: wrapped(*args, **kwargs))


def _begin_swap(wrapped, manager, args, kwargs):
    """Write a volume swap down before Cinder is told of it."""
    def arguments(context, instance, bdm, connector, old_volume_id,
                  new_volume, resize_to, new_attachment_id,
                  is_cinder_migration):
        # the driver is told the same name
        return (bdm.device_name.rpartition('/')[2],
                context, instance, bdm, old_volume_id, new_volume, resize_to,
                new_attachment_id, is_cinder_migration)

    blocks = guards.blocks_of(manager)
    if blocks is not None:
        blocks.swap_begins(*arguments(*args, **kwargs))
    return wrapped(*args, **kwargs)


PATCHES = {
    'ComputeManager.init_host': _init_host,
    'ComputeManager.init_virt_events': _init_virt_events,
    'ComputeManager._init_instance': _init_instance,
    'ComputeManager.cleanup_host': _cleanup_host,
    'ComputeManager.live_migration': _live_migration,
    'ComputeManager.live_migration_abort': _live_migration_abort,
    'ComputeManager._post_live_migration': _post_live_migration,
    'ComputeManager._rollback_live_migration': _rollback_live_migration,
    'ComputeManager.terminate_instance': _terminate_instance,
    'ComputeManager.swap_volume': _swap_volume,
    'ComputeManager._swap_volume': _begin_swap,
}

# From 33.0 on there is a second step of a shutdown, before cleanup_host.
PATCHES_WHERE_THERE = {
    'ComputeManager.graceful_shutdown': _graceful_shutdown,
}
