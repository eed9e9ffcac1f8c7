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

"""What an audit in the middle of a move counts as used.

Placement knows what a host can be asked for, but it is the tracker that tells
which pages, CPUs and persistent memory a guest gets.
"""

from nova.compute import manager
from nova import objects
from nova.virt.libvirt import driver

from tests.functional import properties
from tests.functional import races
from tests.functional import releases
from tests.functional import test_evacuation_races_audit as arrival

TOO_LITTLE = 'TOO LITTLE IS COUNTED'

PLAIN = frozenset(['memory', 'vcpus', 'disk'])
NUMA = frozenset(['huge pages', 'pinned CPUs'])
PMEM = frozenset(['persistent memory'])


@properties.twice
class UsageInMidMove(arrival.ArrivalTestCase):

    def setUp(self):
        if not releases.hosts_have_huge_pages():
            self.skipTest('the fake hosts of Nova %s have no huge pages' %
                          releases.RELEASE)
        super(UsageInMidMove, self).setUp()

    def _start_hosts(self):
        self.flags(cpu_dedicated_set='0-1,4-5', cpu_shared_set='2-3,6-7',
                   group='compute')
        releases.enable_persistent_memory(self)
        for host in ('host-a', 'host-b'):
            self.start_host(host, huge_pages=512)

    def _used(self, host):
        """What the tracker of a host counts as used."""
        tracker = self.processes[host].manager.rt
        node = tracker.compute_nodes[host]
        cells = objects.NUMATopology.obj_from_db_obj(node.numa_topology).cells
        return {
            'memory': node.memory_mb_used, 'vcpus': node.vcpus_used,
            'disk': node.local_gb_used,
            'huge pages': sum(pages.used for cell in cells
                              for pages in cell.mempages
                              if pages.size_kb == 2048),
            'pinned CPUs': sum(len(cell.pinned_cpus) for cell in cells),
            'persistent memory': sum(
                len(found) for provider in tracker.assigned_resources.values()
                for found in provider.values())}

    def _boot_and_count(self, specs, resources):
        """Boot a guest on A, the only one there."""
        self.audit('host-a')
        empty = self._used('host-a')
        server = self.boot('host-a', flavor=self.create_flavor(specs))
        self.audit('host-a')
        self.used = self._used('host-a')
        self.resources = resources
        self.assertEqual(resources, {
            name for name in self.used if self.used[name] > empty[name]})
        return server

    def _must_be_counted(self, host):
        used = self._used(host)
        less = {name: (used[name], self.used[name])
                for name in self.resources if used[name] < self.used[name]}
        if not self.guard:
            # all are from the same picture
            self.assertEqual(self.resources, set(less))
        self.must(not less, TOO_LITTLE, less)
        self.assertEqual(self.used, used)

    @properties.held(stock=TOO_LITTLE)
    def test_guest_returns(self):
        """A cold migration is reverted; A has not taken it back yet."""
        server = self._boot_and_count(
            {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
             'hw:pmem': 'SMALL'}, PLAIN | NUMA | PMEM)
        self.act(server, 'migrate')
        self.wait_for_server(server, lambda s: s['status'] == 'VERIFY_RESIZE')
        found = []

        def audit(compute_manager):
            self.audit('host-a')
            found.append(self._used('host-a'))
        self.useFixture(races.CallBefore(
            manager.ComputeManager, 'finish_revert_resize', audit))
        self.act(server, 'revertResize')
        self.wait_until(lambda: self.nova_says(server) == (
            'active', None, 'host-a'), lambda: self.nova_says(server))
        self.assertEqual(1, len(found))
        self._used = lambda host: found[0]
        self._must_be_counted('host-a')

    def _arrive(self, server):
        audit = self._race(server, driver.LibvirtDriver,
                           'post_live_migration_at_destination')
        self.begin_migration(server, 'host-b').complete()
        self._wait_for_arrival(server)
        audit.end()
        self.assertTrue(audit.between)
        self._must_be_counted('host-b')

    @properties.held(stock=TOO_LITTLE)
    def test_guest_with_huge_pages_arrives(self):
        self._arrive(self._boot_and_count(
            {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'},
            PLAIN | NUMA))

    @properties.held(stock=TOO_LITTLE)
    def test_plain_guest_arrives(self):
        """Nothing is claimed for it, and B has not audited since it began."""
        self._arrive(self._boot_and_count({}, PLAIN))
