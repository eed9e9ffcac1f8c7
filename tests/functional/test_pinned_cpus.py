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

"""An audit in the middle of a move, and the CPUs that a guest is pinned to."""

from nova import objects
from nova.virt.libvirt import driver

from tests.functional.interleavings import recording
from tests.functional import process
from tests.functional import properties
from tests.functional import races
from tests.functional import test_evacuation_races_audit as arrival

PINNED_TWICE = 'CPU PINNED TWICE'
AUDIT_DIED = 'AUDIT DIED'


@properties.twice
class PinnedGuestArrives(arrival.ArrivalTestCase):
    """A pinned guest is live-migrated to B while B's audit runs.

    It has read the instances of B before the guest arrives, and reads the
    migrations after it.
    """

    def setUp(self):
        super(PinnedGuestArrives, self).setUp()
        self.flags(cpu_dedicated_set='0-1,4-5', cpu_shared_set='2-3,6-7',
                   group='compute')
        for host in ('host-a', 'host-b'):
            self.restart_compute(host)
        self.flavor = self.create_flavor({'hw:cpu_policy': 'dedicated'})
        self.server = self.boot('host-a', flavor=self.flavor)

    def _migrate_across_audit(self):
        audit = self._race(self.server, driver.LibvirtDriver,
                           'post_live_migration_at_destination')
        self.begin_migration(self.server, 'host-b').complete()
        self._wait_for_arrival(self.server)
        audit.end()
        self.assertTrue(audit.between)

    def _cpus(self, server):
        cpus = recording.of_guest(self, 'host-b', server['id'])[1]
        self.assertEqual(1, len(cpus))
        return cpus

    @properties.held(stock=PINNED_TWICE)
    def test_cpu_is_pinned_once(self):
        self._migrate_across_audit()
        second = self.boot('host-b', flavor=self.flavor)
        self.must(self._cpus(self.server).isdisjoint(self._cpus(second)),
                  PINNED_TWICE, self._cpus(second))

    @properties.held(stock=AUDIT_DIED)
    def test_audit_goes_on(self):
        """What a stale audit has let happen stops every later one."""
        self._migrate_across_audit()
        self.boot('host-b', flavor=self.flavor)
        self._must_audit('host-b')

    @properties.held(stock=PINNED_TWICE)
    def test_cpu_is_pinned_once_after_context_is_dropped(self):
        """B's audit runs just after Nova has dropped the migration context.

        The instance's new host and topology are saved a moment later.
        """
        self.seconds = []
        self.useFixture(races.CallAfter(
            objects.Instance, 'drop_migration_context', self._audit_on_b))
        self.begin_migration(self.server, 'host-b').complete()
        self._wait_for_arrival(self.server)
        self.assertEqual(1, len(self.seconds))
        self.must(self._cpus(self.server).isdisjoint(
            self._cpus(self.seconds[0])), PINNED_TWICE,
            self._cpus(self.seconds[0]))

    def _audit_on_b(self, instance):
        if process.host_of_caller() == 'host-b' and not self.seconds and (
                instance.uuid == self.server['id']):
            self.audit('host-b')
            self.seconds.append(self.boot('host-b', flavor=self.flavor))

    @properties.held(stock=properties.HOLDS)
    def test_nothing_is_kept(self):
        """The CPU is free again when the guest is gone."""
        self._migrate_across_audit()
        cpus = self._cpus(self.server)
        self.delete(self.server)
        self._must_audit('host-b')
        self.assertEqual(cpus, self._cpus(
            self.boot('host-b', flavor=self.flavor)))

    def _must_audit(self, host):
        seen = self.logged().count('CPUPinningInvalid')
        try:
            self.audit(host)
        except AssertionError:
            self.must(False, AUDIT_DIED, 'audit of %s' % host)
        self.assertEqual(0, seen)
