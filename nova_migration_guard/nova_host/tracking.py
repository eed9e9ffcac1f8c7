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

"""One resource tracker of Nova's, within its audit."""

from nova import objects

RESIZE_REVERTING = 'resize_reverting'

# What ResourceTracker._update_available_resource loads with its instances.
_AUDITED_ATTRIBUTES = ['system_metadata', 'numa_topology', 'flavor',
                       'migration_context', 'resources']


def holders(tracker):
    """The UUIDs for which a tracker holds devices or a move's claim.

    :param tracker: a ``nova.compute.resource_tracker.ResourceTracker``; the
        caller holds its ``compute_resources`` lock
    :returns: a set
    """
    found = set(tracker.tracked_migrations)
    if tracker.pci_tracker:
        found.update(tracker.pci_tracker.claims)
        found.update(tracker.pci_tracker.allocations)
    return found


def devices_of(tracker, uuid):
    """How many PCI devices a tracker holds for an instance.

    :param tracker: a ``nova.compute.resource_tracker.ResourceTracker``
    :param uuid: the instance's UUID
    """
    if not tracker.pci_tracker:
        return 0
    return sum(device.instance_uuid == uuid
               for device in tracker.pci_tracker.pci_devs)


def reverting(context):
    """Read the instances whose resize is being reverted, in one query.

    :param context: the audit's request context
    :returns: a list of ``nova.objects.Instance``; of the whole cell, since
        the instance's host is still the one that it leaves
    """
    return list(objects.InstanceList.get_by_filters(
        context, {'task_state': [RESIZE_REVERTING], 'deleted': False},
        expected_attrs=_AUDITED_ATTRIBUTES))


def audited_instances(context, uuids):
    """Read instances as the audit reads its own, in one query.

    :param context: the audit's request context
    :param uuids: their UUIDs
    :returns: a list of ``nova.objects.Instance``, without deleted ones
    """
    return list(objects.InstanceList.get_by_filters(
        context, {'uuid': sorted(uuids), 'deleted': False},
        expected_attrs=_AUDITED_ATTRIBUTES))


def _migrations(context, uuids, filters):
    # Nova's filter takes one instance, on every release
    if len(uuids) == 1:
        filters['instance_uuid'] = list(uuids)[0]
    return sorted(objects.MigrationList.get_by_filters(context, filters),
                  key=lambda migration: migration.id, reverse=True)


def live_migrations(context, uuids, statuses):
    """Read live migrations of instances, in one query.

    :param context: the audit's request context
    :param uuids: the instances' UUIDs
    :param statuses: those that a migration may have
    :returns: a list of ``nova.objects.Migration``, newest first; with those
        of other instances of the cell when there is more than one UUID
    """
    return _migrations(context, uuids, {
        'migration_type': 'live-migration', 'status': list(statuses)})


def reverted_moves(context, host, uuids):
    """Read reverted moves of instances from a host, in one query.

    :param context: the audit's request context
    :param host: the host that they began on
    :param uuids: the instances' UUIDs
    :returns: a list of ``nova.objects.Migration``, newest first; with those
        of other instances of the host when there is more than one UUID
    """
    return _migrations(context, uuids, {
        'source_compute': host, 'status': ['reverted']})


def count_usage(tracker, context, instance, nodename):
    """Count what an instance uses, as the audit counts any instance.

    :param tracker: a ``nova.compute.resource_tracker.ResourceTracker``; the
        caller holds its ``compute_resources`` lock
    :param context: the audit's request context
    :param instance: a ``nova.objects.Instance``
    :param nodename: the node that is audited
    """
    tracker._update_usage_from_instance(context, instance, nodename)


def is_counted(tracker, migration):
    """Whether a move was among those that a tracker has counted last.

    :param tracker: a ``nova.compute.resource_tracker.ResourceTracker``; the
        caller holds its ``compute_resources`` lock
    :param migration: the move's ``nova.objects.Migration``
    """
    counted = tracker.tracked_migrations.get(migration.instance_uuid)
    return counted is not None and counted.id == migration.id


def counted_instance(tracker, migration):
    """The instance of a move as a tracker has counted it last.

    :param tracker: see :func:`is_counted`, which must be so
    :param migration: the move's ``nova.objects.Migration``
    :returns: a ``nova.objects.Instance``, or None; reads nothing
    """
    counted = tracker.tracked_migrations[migration.instance_uuid]
    return getattr(counted, '_cached_instance', None)
