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

"""The guard of each ComputeManager of this process."""

import typing
import weakref

from oslo_config import cfg

from nova_migration_guard import guard
from nova_migration_guard.nova_host import actions
from nova_migration_guard.nova_host import block_operations
from nova_migration_guard.nova_host import host as hosts
from nova_migration_guard.nova_host import live_migration
from nova_migration_guard.nova_host import monitors

CONF = cfg.CONF

_guards: typing.MutableMapping = weakref.WeakKeyDictionary()


def for_manager(manager):
    """The guard of a ComputeManager, or None when it has none.

    :param manager: a ``nova.compute.manager.ComputeManager``
    """
    return _guards.get(manager)


def blocks_of(manager):
    """What tracks the block operations of a ComputeManager, or None.

    :param manager: a ``nova.compute.manager.ComputeManager``
    """
    found = _guards.get(manager)
    if found is None or not CONF.migration_guard.block_jobs:
        return None
    return found.blocks


def by_host():
    """The guards of this process, as pairs of a host's name and its guard."""
    return [(manager.host, found) for manager, found in
            list(_guards.items())]


def create(manager):
    """Make the guard of a ComputeManager that starts.

    :param manager: a ``nova.compute.manager.ComputeManager``
    :returns: a :class:`nova_migration_guard.guard.Guard`
    """
    host = hosts.NovaHost(manager)
    _guards[manager] = guard.Guard(
        host, live_migration.LiveMigrations(manager),
        block_operations.BlockOperations(manager),
        actions.InstanceActions(manager, host), monitors.Monitors(manager),
        CONF.migration_guard)
    return _guards[manager]
