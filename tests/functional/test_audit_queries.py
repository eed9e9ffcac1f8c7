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

"""What the resource guard costs in queries: counted, at its bounds."""

from nova.compute import manager
from nova.virt.libvirt import driver

from tests.functional.interleavings import database
from tests.functional import properties
from tests.functional import queries
from tests.functional import races
from tests.functional import releases
from tests.functional import test_evacuation_races_audit as arrival


class QueriesOfAudits(arrival.ArrivalTestCase):
    """With the guard, and with its option off, which is stock Nova."""

    def setUp(self):
        super(QueriesOfAudits, self).setUp()
        self.queries = self.useFixture(queries.Queries(
            database.cell_manager(self)))
        self.queries.watch_guard()

    def _start_hosts(self):
        releases.let_devices_migrate_live(self)
        for host in ('host-a', 'host-b'):
            self.start_host(host, releases.pci_devices(1, 4))

    def _by_guard(self, host):
        """Audit a host, and count what the guard asks."""
        self.audit(host)
        return self.queries.of_last(host)[1]

    def _in_all(self, host, guarded=True):
        """Audit a host, and count what it asks of instances and migrations.

        An audit also saves its node when something is new.
        """
        self.flags(resource_guard=guarded, group='migration_guard')
        self.audit(host)
        self.flags(resource_guard=True, group='migration_guard')
        return self._asked(host)

    def _asked(self, host):
        return len([name for name in self.queries.of_last(host)[0]
                    if name.startswith(('instance_', 'migration_'))])

    @properties.guarded
    def test_nothing_changes(self):
        self.assertEqual(0, self._by_guard('host-a'))
        server = self.boot('host-a')
        self.boot('host-a')
        self.assertEqual(0, self._by_guard('host-a'))
        job = self.begin_migration(server, 'host-b')
        self.assertEqual(0, self._by_guard('host-a'))
        # one that is coming is on the list of the migrations: what the guard
        # reads of it, Nova need not
        self.assertEqual(1, self._by_guard('host-b'))
        self.assertEqual(self._in_all('host-b', guarded=False),
                         self._in_all('host-b'))
        job.complete()
        self._wait_for_arrival(server)
        # the first audit after that looks what came of it
        self.assertLessEqual(self._by_guard('host-a'), 1)
        self.assertEqual(0, self._by_guard('host-a'))
        self.assertEqual(0, self._by_guard('host-b'))
        self.delete(server)
        self.assertEqual(0, self._by_guard('host-b'))

    @properties.guarded
    def test_first_audit_of_a_process(self):
        self.boot('host-a')
        self.restart_compute('host-a')
        self.assertEqual(1, self.queries.of_last('host-a')[1])
        guarded = self._asked('host-a')
        self.flags(resource_guard=False, group='migration_guard')
        self.restart_compute('host-a')
        self.assertEqual(1, guarded - self._asked('host-a'))

    @properties.guarded
    def test_one_arrives(self):
        server = self.boot('host-a')
        audit = self._race(server, driver.LibvirtDriver,
                           'post_live_migration_at_destination')
        self.begin_migration(server, 'host-b').complete()
        self._wait_for_arrival(server)
        audit.end()
        self.assertTrue(audit.between)
        # Nova itself audits at a migration's end, too; on 20 and 21 one of
        # these finds the instance on its way as well
        self.assertIn(max(guard for host, _, guard, _ in self.queries.audits
                          if host == 'host-b'), (1, 2))

    @properties.guarded
    def test_one_is_arriving(self):
        server = self.boot('host-a', networks=[
            {'port': self.create_sriov_port(1)}])
        found = []

        def audit(compute_manager):
            self.assertIsNone(self.migrations(server)[-1].dest_node)
            self.audit('host-b')
            found.append(self.queries.of_last('host-b')[1])
        self.useFixture(races.CallAfter(
            manager.ComputeManager, 'check_can_live_migrate_destination',
            audit))
        self.begin_migration(server, 'host-b').complete()
        self._wait_for_arrival(server)
        self.assertEqual([2], found)

    @properties.guarded
    def test_two_are_returning(self):
        flavor = self.create_flavor({'pci_passthrough:alias': 'vf:1'})
        servers = [self.boot('host-a', flavor=flavor) for _ in range(2)]
        for server in servers:
            self.act(server, 'migrate')
            self.wait_for_server(server,
                                 lambda s: s['status'] == 'VERIFY_RESIZE')
        begun, found = [], []

        def audit(compute_manager):
            begun.append(None)
            self.wait_until(lambda: len(begun) == 2, 'both are reverted')
            if not found:
                found.append(None)
                self.audit('host-a')
                found[0] = self.queries.of_last('host-a')[1]
            else:
                self.wait_until(lambda: found[0] is not None, 'the audit')
        self.useFixture(races.CallBefore(
            manager.ComputeManager, 'finish_revert_resize', audit))
        for server in servers:
            self.act(server, 'revertResize')
        for server in servers:
            self.wait_until(
                lambda server=server: self.nova_says(server) == (
                    'active', None, 'host-a'),
                lambda server=server: self.nova_says(server))
        self.assertEqual([2], found)
        self.assertEqual(2, len([
            state for state, _ in self.devices('host-a').values()
            if state == 'allocated']))
