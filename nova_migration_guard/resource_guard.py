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
has this host, and one more look at the instance finds it.

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
of an idle instance. And an instance that is unshelved (to 27) is on its host,
but still in a state in which Nova counts nothing.

No other move can begin or take a step meanwhile: a claim needs the lock that
the audit holds.

Where to look
-------------

An instance that an audit can miss is one that this process knows of. A build
and an unshelved instance take their host under the lock that the audit holds.
Evacuation, resize and cold migration claim here before they save the host; a
live migration claims, or at the least asks this host's driver to prepare, once
its record names this host; and an instance that a revert returns was counted
here before it left. So the audit has missed nothing when every instance that
this process has counted, claimed for or prepared for is on one of its lists,
and no query is made.

Only the first audit of a process cannot know of an instance that is returning,
and asks. One that is arriving is on its list of migrations or holds devices,
which are in the database; and no one can have arrived, for that takes a
message, which the process has not begun to listen for.
"""

import typing
import weakref

from oslo_config import cfg
from oslo_log import log as logging

from nova_migration_guard import facts
from nova_migration_guard import mdev_claims
from nova_migration_guard import metrics
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

# {tracker: what expected returns}
_expected: typing.MutableMapping = weakref.WeakKeyDictionary()


def only_reports():
    """Whether nothing is to be changed."""
    return CONF.migration_guard.mode == 'report'


def expected(tracker):
    """The instances that move to or from a tracker's host.

    :param tracker: the ``nova.compute.resource_tracker.ResourceTracker``
    :returns: the set of their UUIDs, to be changed in place; with those whose
        move has ended since the tracker's last audit
    """
    return _expected.setdefault(tracker, set())


def expect(tracker, uuid):
    """Remember that an instance moves to or from a tracker's host.

    :param tracker: the ``nova.compute.resource_tracker.ResourceTracker``
    :param uuid: the instance's UUID
    """
    expected(tracker).add(uuid)


def remember(tracker, instance, migration):
    """Remember a move, and its instance as it was when it was counted.

    Nova may drop the migration context of a live migration too early. Like
    Nova's own audit this keeps the instance with the record that the tracker
    has.

    :param tracker: the ``nova.compute.resource_tracker.ResourceTracker`` that
        has counted the move; the caller holds its ``compute_resources`` lock
    :param instance: its ``nova.objects.Instance``
    :param migration: its ``nova.objects.Migration``
    """
    if tracker.tracked_migrations.get(instance.uuid) is not migration:
        return
    expect(tracker, instance.uuid)
    if migration.migration_type == facts.LIVE_MIGRATION:
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
    if only_reports():
        LOG.warning('The claim of %s is forgotten; it would be kept.',
                    addresses, instance_uuid=uuid)
        return
    devices.claims[uuid] = kept + list(claimed)
    metrics.count('devices_kept_total', len(kept))
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
    :param counted: the UUIDs of the instances that the tracker had counted
        as this host's before the audit
    """

    def __init__(self, tracker, context, nodename, migrations, instances,
                 by_uuid, counted):
        self._tracker = tracker
        self._context = context
        self._nodename = nodename
        self._migrations = migrations
        self._instances = instances
        self._by_uuid = by_uuid
        self._counted = counted
        self._corrected = False

    def complete(self):
        """Add what the audit has missed to its own lists.

        No query when every instance that this process knows of is on one of
        the lists; one for all that are not; and one for the migrations of
        those that are arriving, or returning. The first audit of a process
        makes one in any case. The instances of the migrations on the audit's
        list are read by one query for all of them, where Nova makes one for
        each.
        """
        known = {instance.uuid for instance in self._instances}
        listed = {migration.instance_uuid for migration in self._migrations}
        claims = dict(mdev_claims.of_driver(self._tracker.driver) or {})
        lost = self._counted.union(
            expected(self._tracker), claims,
            tracking.holders(self._tracker)) - known - listed
        self._count_unshelved()
        found = [instance for instance in self._read_moving(known).values()
                 if instance.host == self._tracker.host]
        if lost:
            found += tracking.audited_instances(self._context, lost)
        if self._tracker not in _audited:
            found += [instance for instance in
                      tracking.reverting(self._context)
                      if instance.uuid not in known | listed | lost]
        self._look_at(found)
        self._end_claims(claims)
        expected(self._tracker).difference_update(known, lost - {
            instance.uuid for instance in found
            if instance.task_state == facts.MIGRATING})
        _audited.add(self._tracker)
        if self._corrected:
            metrics.count('audits_corrected_total')

    def _read_moving(self, known):
        """Read the instances of the migrations, and hand them to the audit.

        :param known: the UUIDs of those that it has read
        :returns: {uuid: instance} of the others
        """
        uuids = {migration.instance_uuid
                 for migration in self._migrations} - known
        if not uuids or only_reports():
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
        if only_reports():
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

    def _look_at(self, found):
        """Judge the instances that are on none of the audit's lists."""
        arriving, returning = {}, {}
        for instance in found:
            if instance.host == self._tracker.host:
                if instance.node == self._nodename and self._may_keep(
                        instance, 'arrived while the audit ran'):
                    self._count(instance)
            elif instance.task_state == facts.MIGRATING:
                arriving[instance.uuid] = instance
            elif instance.task_state == tracking.RESIZE_REVERTING:
                returning[instance.uuid] = instance
        if arriving:
            self._keep_moves(
                arriving, 'is arriving', self._is_arriving,
                tracking.live_migrations(self._context, arriving,
                                         facts.OPEN_STATUSES))
        if returning:
            self._keep_moves(
                returning, 'is returning', self._is_returning,
                tracking.reverted_moves(self._context, self._tracker.host,
                                        returning))

    def _keep_moves(self, instances, why, belongs_here, migrations):
        """Add the newest move of each instance that belongs here."""
        left = dict(instances)
        for migration in migrations:
            instance = left.get(migration.instance_uuid)
            if instance is None or not belongs_here(instance, migration):
                continue
            del left[instance.uuid]
            if self._may_keep(instance, why):
                migration.instance = instance
                self._migrations.objects.append(migration)

    def _end_claims(self, claims):
        """Free the mediated devices of guests that do not come any more.

        :param claims: {instance UUID: [mdev UUID]} before the guests were
            looked for; what was claimed since is not judged
        """
        if not claims or only_reports():
            return
        coming = {migration.instance_uuid for migration in self._migrations
                  if self._is_arriving(None, migration)}
        current = mdev_claims.of_driver(self._tracker.driver)
        for uuid, mdevs in claims.items():
            if uuid not in coming and current.get(uuid) is mdevs:
                current.pop(uuid, None)
                LOG.info('The claim of the mediated devices %s has ended '
                         'with the migration.', ', '.join(mdevs),
                         instance_uuid=uuid)

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

    def _may_keep(self, instance, why):
        """Say in the log what is missing, and tell whether to add it."""
        if only_reports():
            LOG.warning('The resource audit has missed the instance, which '
                        '%s; its resources would be kept.', why,
                        instance=instance)
            return False
        LOG.info('The resource audit had missed the instance, which %s; its '
                 'resources are kept.', why, instance=instance)
        self._corrected = True
        metrics.count('devices_kept_total', tracking.devices_of(
            self._tracker, instance.uuid))
        return True

    def _count(self, instance):
        self._instances.objects.append(instance)
        self._by_uuid[instance.uuid] = instance
        tracking.count_usage(
            self._tracker, self._context, instance, self._nodename)
