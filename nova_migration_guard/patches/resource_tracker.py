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

"""Patches of ``nova.compute.resource_tracker.ResourceTracker``.

All run under the ``compute_resources`` lock, inside the audit or a claim; it
must not be taken again. They would be needless once the audit reads its
instances and its migrations as one picture, and a live migration drops its
context together with saving the new host. Upstream made one move atomic
instead: ``finish_evacuation`` (21.2.0, 22.1.0, 23.0.0, bug 1896463).
"""

import typing
import weakref

from oslo_config import cfg

from nova_migration_guard import resource_guard

CONF = cfg.CONF
MODULE = 'nova.compute.resource_tracker'

# What each tracker's audit is at: its instances, the same by UUID, and the
# UUIDs of those that were counted before it.
_audits: typing.MutableMapping = weakref.WeakKeyDictionary()


def _active():
    return CONF.migration_guard.enabled and CONF.migration_guard.resource_guard


def _update_usage_from_instances(wrapped, tracker, args, kwargs):
    """Remember the audit's own lists, which it works on to its end."""
    def instances_of(context, instances, nodename):
        return instances

    counted = set(tracker.tracked_instances)
    by_uuid = wrapped(*args, **kwargs)
    if _active():
        _audits[tracker] = (instances_of(*args, **kwargs), by_uuid, counted)
    return by_uuid


def _update_usage_from_migrations(wrapped, tracker, args, kwargs):
    """Correct the audit's lists before it goes on to its migrations.

    On every release both of the audit's reads lie behind it at this point,
    and ``clean_usage``, which frees devices, before it.
    """
    def audit_of(context, migrations, nodename):
        return context, nodename, migrations

    if _active() and tracker in _audits:
        resource_guard.Audit(
            tracker, *(audit_of(*args, **kwargs) + _audits.pop(tracker))
        ).complete()
    return wrapped(*args, **kwargs)


def _update_usage_from_migration(wrapped, tracker, args, kwargs):
    """Remember what a claim or an audit has counted for one move."""
    def move_of(context, instance, migration, nodename):
        return instance, migration

    result = wrapped(*args, **kwargs)
    if _active():
        resource_guard.remember(tracker, *move_of(*args, **kwargs))
    return result


PATCHES = {
    'ResourceTracker._update_usage_from_migration':
        _update_usage_from_migration,
    'ResourceTracker._update_usage_from_instances':
        _update_usage_from_instances,
    'ResourceTracker._update_usage_from_migrations':
        _update_usage_from_migrations,
}
