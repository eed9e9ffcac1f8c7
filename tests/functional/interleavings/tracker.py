# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What a resource tracker has in memory: copies of it, and what they say."""

import collections
import copy

from nova import objects
from nova_migration_guard import resource_guard

#: What an audit changes of a tracker. The rest is shared with the driver and
#: with Placement.
_NAMES = ('compute_nodes', 'stats', 'tracked_instances', 'tracked_migrations',
          'is_bfv', 'assigned_resources', 'pci_tracker')

#: What the guard has in memory besides, in a copy.
_EXPECTED = 'expected by the guard'

#: devices: addresses of the functions that an instance has, by a claim or for
#: good; free: addresses of the functions that can be given away; cpus: those
#: that are pinned; counted: whether the instance's usage is counted, as a
#: guest or as a move.
Usage = collections.namedtuple('Usage', 'devices free cpus counted')


def copied(memory):
    """Copy a tracker's memory.

    :param memory: what :func:`take` or this function returned
    """
    memo = {}
    devices = memory['pci_tracker']
    for shared in (devices._context, devices.dev_filter):
        memo[id(shared)] = shared
    result = copy.deepcopy(memory, memo)
    # the copy of an object has its fields only
    for device in devices.pci_devs:
        new = memo[id(device)]
        new.parent_device = memo.get(id(device.parent_device))
        new.child_devices = [memo[id(child)]
                             for child in device.child_devices]
    for uuid, migration in memory['tracked_migrations'].items():
        if hasattr(migration, '_cached_instance'):
            result['tracked_migrations'][uuid].instance = migration.instance
    return result


def take(tracker):
    """Copy what a tracker, and the guard for it, has in memory."""
    memory = {name: getattr(tracker, name) for name in _NAMES}
    memory[_EXPECTED] = resource_guard.expected(tracker)
    return copied(memory)


def swap(tracker, memory):
    """Give a tracker another memory, and return the one that it had."""
    before = {name: getattr(tracker, name) for name in _NAMES}
    expected = resource_guard.expected(tracker)
    before[_EXPECTED] = set(expected)
    expected.clear()
    expected.update(memory[_EXPECTED])
    vars(tracker).update((name, memory[name]) for name in _NAMES)
    return before


def usage(memory, node, uuid):
    """Read off what is in use on a node.

    :param memory: what :func:`take` returned
    :param uuid: the UUID of the one instance that moves
    :returns: a :class:`Usage`
    """
    devices = [device for device in memory['pci_tracker'].pci_devs
               if device.dev_type == 'type-VF']
    topology = memory['compute_nodes'][node].numa_topology
    cells = (objects.NUMATopology.obj_from_db_obj(topology).cells
             if topology else [])
    return Usage(
        devices=frozenset(device.address for device in devices
                          if device.instance_uuid == uuid),
        free=frozenset(device.address for device in devices
                       if device.status == 'available'),
        cpus=frozenset(cpu for cell in cells for cpu in cell.pinned_cpus),
        counted=(uuid in memory['tracked_instances'] or
                 uuid in memory['tracked_migrations']))
