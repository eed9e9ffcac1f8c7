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

"""A move that runs undisturbed, and everything an audit could have met."""

import collections

from lxml import etree

from nova.virt import hardware

from tests.functional.interleavings import database
from tests.functional.interleavings import tracker
from tests.functional import releases

#: picture: of the database; copy: of the database; asked: how often the move
#: had asked for the host's lock; memory: what the host's tracker had in
#: memory, or None while the move held the lock; guest: what the guest uses
#: on the host, as (addresses of devices, CPUs), in libvirt.
Position = collections.namedtuple('Position',
                                  'picture copy asked memory guest')


def of_guest(cloud, host, uuid):
    """What a guest that runs or arrives on a host uses, says libvirt.

    :returns: (addresses of devices, numbers of CPUs)
    """
    domain = cloud.hypervisor(host).domains.get(uuid)
    if domain is None or not domain.active:
        return frozenset(), frozenset()
    cpus = set()
    for pin in etree.fromstring(domain.XMLDesc(0)).findall(
            './cputune/vcpupin'):
        cpus.update(hardware.parse_cpu_spec(pin.get('cpuset')))
    devices = (domain.pci_addresses() if
               releases.migrated_guest_names_its_devices() else ())
    return frozenset(devices), frozenset(cpus)


class Recording(object):
    """What one host's audit could have met at each step of a move.

    :param cloud: the :class:`~tests.functional.cloud.CloudTestCase`
    :param steps: the :class:`~tests.functional.interleavings.stepping.Steps`
    :param hosts: the hosts that are looked at
    """

    def __init__(self, cloud, steps, hosts):
        self._cloud = cloud
        self._steps = steps
        self.positions = {host: [] for host in hosts}

    def record(self, uuid, act):
        """Run a move and record it.

        :param uuid: the UUID of the instance that moves
        :param act: runs the move to its end, and tells whether it got there
        :returns: what ``act`` returned
        """
        self._steps.begin(uuid, self._step)
        for host in self.positions:
            self._step(host)
        result = act()
        self._steps.end()
        return result

    def _step(self, host):
        steps = self._steps
        if host not in self.positions:
            return
        self.positions[host].append(Position(
            picture=steps.pictures[host],
            copy=database.Copy(steps.managers[host]),
            asked=steps.asked[host],
            memory=(None if steps.held[host] else tracker.take(
                self._cloud.processes[host].manager.rt)),
            guest=of_guest(self._cloud, host, steps.uuid)))

    def close(self):
        for positions in self.positions.values():
            for position in positions:
                position.copy.close()
