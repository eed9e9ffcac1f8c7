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

"""Completes the picture from which a resource audit computes.

The audit reads the instances of its host and then the migrations in progress.
What a guest of the host holds is freed when the guest is in neither list, and
there are moves in whose middle it is in neither although it is here, arriving
or returning:

*Arrived.* A move to this host ends between the two reads. When the instances
were read its host was still the old one, and when the migrations were read it
had ended (bug 1896463). Every move saves the instance's host before it ends
its migration, so by the time that the second list has been read the database
has this host, and one more look at the instances finds it.

*Arriving.* A live migration claims devices here before its record names this
host: the conductor saves the destination after it has bound the ports there.

*Returning.* A revert of a resize or cold migration ends its record on the
destination, and the source takes the instance back when it gets the cast that
follows. Until then the record is no longer in progress and the host is still
the destination's.

Nor must the audit mix what it read of one instance at two moments. For each
migration Nova reads the instance once more while it counts. By then a move may
have ended, and the audit counts neither the move, whose instance is idle, nor
the instance, which it has not seen here. So the instances of all migrations
are read before the second look at the host, and the audit gets these.

A live migration has one more such moment on its destination: Nova drops the
migration context, which alone says what CPUs the guest is pinned to here,
before it saves the instance with its new host and topology. The one that the
claim was counted by stands in.

Older releases have two more, which a quiet audit meets as well. An evacuated
instance is idle before it has its new host (to 21.1), and Nova counts no move
of an idle instance. And an instance that is unshelved (20) is on its host, but
still in a state in which Nova counts nothing.

No other move can begin or take a step meanwhile: a claim needs the lock that
the audit holds.
"""

import typing
import weakref

from oslo_config import cfg
from oslo_log import log as logging

from nova_migration_guard import facts
from nova_migration_guard.nova_host import tracking

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

EVACUATION = 'evacuation'
REBUILD_SPAWNING = 'rebuild_spawning'
SHELVED_OFFLOADED = 'shelved_offloaded'
SPAWNING = 'spawning'

# The trackers that have completed an audit. The first one of a process knows
# of no claim but those of devices, which are in the database.
_audited: typing.MutableSet = weakref.WeakSet()


def _only_reports():
    return CONF.migration_guard.mode == 'report'


def remember(tracker, instance, migration):
    """Keep the instance of a live migration as it was when it was counted.

    Nova may drop its migration context too early. Like Nova's own audit this
    keeps it with the record that the tracker has.

    :param tracker: the ``nova.compute.resource_tracker.ResourceTracker`` that
        has counted the move; the caller holds its ``compute_resources`` lock
    :param instance: its ``nova.objects.Instance``
    :param migration: its ``nova.objects.Migration``
    """
    if (migration.migration_type == facts.LIVE_MIGRATION and
            tracker.tracked_migrations.get(instance.uuid) is migration):
        migration.instance = instance


def keep_claims(devices, uuid, before, claimed):
    """Keep the devices that an earlier claim of a move has taken.

    Nova remembers the last claim only, so what an earlier one took stayed
    claimed for ever. Devices for the same request are not kept: the later
    claim is a second attempt, and the guest is to get one device for each.

    :param devices: the ``nova.pci.manager.PciDevTracker``; the caller holds
        the ``compute_resources`` lock
    :param uuid: the instance's UUID
    :param before: the ``nova.objects.PciDevice`` that were claimed for it
    :param claimed: those that were claimed now
    """
    requests = {device.request_id for device in claimed}
    kept = [device for device in before
            if device.request_id not in requests and
            device.instance_uuid == uuid]
    if not kept:
        return
    addresses = ', '.join(device.address for device in kept)
    if _only_reports():
        LOG.warning('The claim of %s is forgotten; it would be kept.',
                    addresses, instance_uuid=uuid)
        return
    devices.claims[uuid] = kept + list(claimed)
    LOG.info('The claim of %s is kept beside a later one.', addresses,
             instance_uuid=uuid)


class Audit(object):
    """One audit, at the point where it has read both of its lists.

    :param tracker: the ``nova.compute.resource_tracker.ResourceTracker``
        whose audit it is; the caller holds its ``compute_resources`` lock
    :param context: the audit's request context
    :param nodename: the node that is audited
    :param migrations: the audit's ``nova.objects.MigrationList``, corrected
        in place; ``clean_usage`` gets it later
    :param instances: the audit's ``nova.objects.InstanceList``, corrected in
        place; ``clean_usage`` gets it later
    :param by_uuid: the audit's {uuid: instance}, corrected in place
    """

    def __init__(self, tracker, context, nodename, migrations, instances,
                 by_uuid):
        self._tracker = tracker
        self._context = context
        self._nodename = nodename
        self._migrations = migrations
        self._instances = instances
        self._by_uuid = by_uuid

    def complete(self):
        """Add what the audit has missed to its own lists.

        One query when it has missed nothing, two when an instance arrived,
        and one more for each instance that is arriving or returning. The
        first audit of a process makes one more. The instances of migrations
        that are on no list of the audit are read by one query for all of
        them, where Nova makes one for each.
        """
        known = {instance.uuid for instance in self._instances}
        self._count_unshelved()
        moving = self._read_moving(known)
        missed = tracking.uuids_on_host(self._tracker, self._context) - known
        known.update(
            migration.instance_uuid for migration in self._migrations)
        missed |= tracking.holders(self._tracker) - known
        if self._tracker not in _audited:
            missed |= tracking.reverting(self._context) - known
            _audited.add(self._tracker)
        arrived = missed & {uuid for uuid, instance in moving.items()
                            if instance.host == self._tracker.host}
        for uuid in sorted(arrived):
            self._look_at(moving[uuid])
        if missed - arrived:
            for instance in tracking.audited_instances(
                    self._context, missed - arrived):
                self._look_at(instance)

    def _read_moving(self, known):
        """Read the instances of the migrations, and hand them to the audit.

        :param known: the UUIDs of those that it has read
        :returns: {uuid: instance} of the others
        """
        uuids = {migration.instance_uuid
                 for migration in self._migrations} - known
        if not uuids or _only_reports():
            return {}
        found = {instance.uuid: instance for instance in
                 tracking.audited_instances(self._context, uuids)}
        for migration in self._migrations:
            instance = found.get(migration.instance_uuid)
            # Nova itself reads one that is deleted
            if instance is not None:
                self._correct(instance, migration)
                migration.instance = instance
        return found

    def _count_unshelved(self):
        """Count what Nova takes for offloaded still."""
        if _only_reports():
            return
        for instance in self._instances:
            if (instance.vm_state == SHELVED_OFFLOADED and
                    instance.task_state == SPAWNING and
                    instance.uuid not in self._tracker.tracked_instances):
                tracking.count_usage(
                    self._tracker, self._context, instance, self._nodename)

    def _correct(self, instance, migration):
        """Let Nova count a guest that has landed here and not been saved so.

        Only what the audit works on is corrected; it saves no instance.
        """
        if (migration.dest_compute != self._tracker.host or
                instance.host == self._tracker.host or
                not tracking.is_counted(self._tracker, migration)):
            return
        if instance.task_state == facts.MIGRATING:
            counted = tracking.counted_instance(self._tracker, migration)
            if instance.migration_context is None and counted is not None:
                instance.migration_context = counted.migration_context
        elif (instance.task_state is None and
              migration.migration_type == EVACUATION):
            instance.task_state = REBUILD_SPAWNING

    def _look_at(self, instance):
        if instance.host == self._tracker.host:
            if instance.node == self._nodename and self._may_keep(
                    instance, 'arrived while the audit ran'):
                self._count(instance)
        elif instance.task_state == facts.MIGRATING:
            self._keep_move(instance, 'is arriving', self._is_arriving)
        elif instance.task_state == tracking.RESIZE_REVERTING:
            self._keep_move(instance, 'is returning', self._is_returning)

    def _keep_move(self, instance, why, belongs_here):
        for migration in tracking.moves(self._context, instance.uuid):
            if belongs_here(instance, migration):
                if self._may_keep(instance, why):
                    migration.instance = instance
                    self._migrations.objects.append(migration)
                return

    def _is_arriving(self, instance, migration):
        return (migration.migration_type == facts.LIVE_MIGRATION and
                migration.status in facts.OPEN_STATUSES and
                migration.dest_compute in (None, self._tracker.host))

    def _is_returning(self, instance, migration):
        context = instance.migration_context
        return (migration.status == 'reverted' and
                migration.source_compute == self._tracker.host and
                migration.source_node == self._nodename and
                (context is None or context.migration_id == migration.id))

    @staticmethod
    def _may_keep(instance, why):
        """Say in the log what is missing, and tell whether to add it."""
        if _only_reports():
            LOG.warning('The resource audit has missed the instance, which '
                        '%s; its resources would be kept.', why,
                        instance=instance)
            return False
        LOG.info('The resource audit had missed the instance, which %s; its '
                 'resources are kept.', why, instance=instance)
        return True

    def _count(self, instance):
        self._instances.objects.append(instance)
        self._by_uuid[instance.uuid] = instance
        tracking.count_usage(
            self._tracker, self._context, instance, self._nodename)
