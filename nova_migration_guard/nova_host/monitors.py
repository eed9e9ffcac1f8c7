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

"""Nova's monitor of a live migration, for a job that runs already."""

import collections
import importlib
import time

from nova import context as nova_context
from nova import objects

from nova_migration_guard import facts
from nova_migration_guard.nova_host import plan as plans

# Seconds between two looks whether the first resource audit is done.
_INTERVAL = 0.5


class Monitors(object):
    """The monitors of adopted migrations of one nova-compute.

    :param manager: a ``nova.compute.manager.ComputeManager`` whose driver is
        the libvirt driver
    """

    def __init__(self, manager):
        self._manager = manager
        self._plans = plans.Plans(manager)

    def begin(self, instance, run):
        """Run a monitor in the thread pool of live migrations.

        Nova looks for a running migration in ``active_migrations`` of the
        driver, when a user forces it to complete. It is not put among those
        that wait in the queue: an abort would take one for not begun. A
        migration that this process watches already is left alone.

        :param instance: a ``nova.objects.Instance``
        :param run: a callable without arguments
        :raises Exception: when nova-compute stops already
        """
        active = self._manager.driver.active_migrations
        if instance.uuid in active:
            return
        active[instance.uuid] = collections.deque()
        try:
            self._submit(instance, run)
        except Exception:
            active.pop(instance.uuid, None)
            raise

    def cancel_queued(self):
        """Take the migrations out of the queue that have not begun.

        :returns: a list of ``nova.objects.Migration``
        """
        waiting = self._manager._waiting_live_migrations
        cancelled = []
        for uuid, (migration, future) in list(waiting.items()):
            # without a future it is being submitted, and begins
            if future is not None and future.cancel():
                waiting.pop(uuid, None)
                cancelled.append(migration)
        return cancelled

    def _submit(self, instance, run):
        if hasattr(self._manager, '_live_migration_executor'):
            self._manager._live_migration_executor.submit(run)
            return
        # 34.0: a pool of the process; what is in it is waited for at its end
        factory = importlib.import_module('nova.thread_pool_factory')
        self._manager._start_recorded_task(
            factory.ExecutorType.LIVE_MIGRATION, 'live_migration', instance,
            nova_context.get_admin_context(), run)

    def watch(self, context, instance, entry, job, must_have_left,
              must_have_stayed):
        """Run Nova's monitor until the migration has ended.

        :param context: of the adoption
        :param instance: a ``nova.objects.Instance``
        :param entry: the journal's
        :param job: a :class:`nova_migration_guard.adoption.Job`
        :param must_have_left: called before Nova's post-migration
        :param must_have_stayed: called before Nova's rollback; both raise
            when it is not so
        :raises Exception: what Nova, libvirt and they raise
        """
        manager, driver = self._manager, self._manager.driver
        plan = self._plans.plan(context, instance, entry, (),
                                entry.destination)
        plan.migrate_data.migration = self._migration(context, entry, job)
        guest = driver._host.get_guest(instance)
        disks = []
        if plan.migrate_data.block_migration:
            disks = driver._live_migration_copy_disk_paths(
                context, instance, guest)[0]
        # 27.0, and 24.2.1: what it gives the instance when that fails
        post_migration = getattr(
            manager, '_post_live_migration_update_host',
            manager._post_live_migration)

        def post(*args):
            must_have_left()
            self._wait_for_tracker()
            return post_migration(*args, source_bdms=plan.source_bdms)

        def recover(*args, **kwargs):
            must_have_stayed()
            return manager._rollback_live_migration(
                *args, source_bdms=plan.source_bdms, **kwargs)

        try:
            driver._live_migration_monitor(
                context, instance, guest, plan.destination, post, recover,
                plan.block_migration, plan.migrate_data, job, disks)
        finally:
            driver.active_migrations.pop(instance.uuid, None)

    @staticmethod
    def _migration(context, entry, job):
        migration = objects.Migration.get_by_uuid(context, entry.migration)
        if job.in_postcopy() and migration.status != facts.POSTCOPY:
            # Nova died between the switch and this; it would count the
            # completion timeout, and its abort fails in post-copy
            migration.status = facts.POSTCOPY
            migration.save()
        return migration

    def _wait_for_tracker(self):
        """Wait for the first resource audit.

        Nova's post-migration frees devices, and the tracker of a nova-compute
        that starts has none yet.
        """
        while self._manager.rt.pci_tracker is None:
            time.sleep(_INTERVAL)
