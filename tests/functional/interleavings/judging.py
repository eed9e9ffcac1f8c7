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

"""What an audit must not set free."""

import collections

#: devices, cpus: what the instance has on a host in the end, where that is
#: what it had there all along
Holding = collections.namedtuple('Holding', 'devices cpus counted')

NOTHING = Holding(frozenset(), frozenset(), False)

FREED_DEVICE = 'device free while held'
FREED_CPU = 'pinned CPU free while held'
NOT_COUNTED = 'usage not counted'
DIED = 'audit ended by an error'
LEFT_OVER = 'left over after the move'


def holding(usage):
    """What an instance holds according to a tracker's usage."""
    return Holding(usage.devices, usage.cpus, usage.counted)


def violations(outcome, kept, guest):
    """Judge what an audit has done.

    :param outcome: the :class:`~.exploring.Outcome`
    :param kept: the :class:`Holding` of the instance on this host when the
        undisturbed move has ended; NOTHING where it leaves the host
    :param guest: (devices, CPUs) that the guest used here in libvirt when the
        audit ended
    :returns: a sorted list of names
    """
    before, after = outcome.before, outcome.after
    found = set()
    if outcome.error:
        found.add(DIED)
    if (before.devices & kept.devices - after.devices or
            guest[0] & after.free):
        found.add(FREED_DEVICE)
    if before.cpus & kept.cpus - after.cpus or guest[1] - after.cpus:
        found.add(FREED_CPU)
    if kept.counted and before.counted and not after.counted:
        found.add(NOT_COUNTED)
    return sorted(found)
