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

"""Devices that one move claims in two ways."""

from tests.functional import properties
from tests.functional import releases
from tests.functional import test_evacuation_races_audit as arrival

CLAIM_LOST = 'CLAIM LOST'


@properties.twice
class TwoClaimsOfOneMove(arrival.ArrivalTestCase):
    """A guest with a device by alias and one by port is migrated live."""

    def setUp(self):
        if not releases.devices_by_alias_migrate_live():
            self.skipTest('devices by alias cannot be migrated live')
        super(TwoClaimsOfOneMove, self).setUp()
        self.server = self.boot(
            'host-a', flavor=self.create_flavor(
                {'pci_passthrough:alias': 'vf:1'}),
            networks=[{'port': self.create_sriov_port(1)}])
        self.begin_migration(self.server, 'host-b').complete()
        self._wait_for_arrival(self.server)

    def _start_hosts(self):
        releases.let_devices_migrate_live(self)
        for host in ('host-a', 'host-b'):
            self.start_host(host, releases.pci_devices(1, 3))

    def _states(self):
        return sorted(state for state, _ in self.devices('host-b').values())

    @properties.held(stock=CLAIM_LOST)
    def test_both_are_allocated(self):
        self.must(self._states() == ['allocated', 'allocated', 'available'],
                  CLAIM_LOST, self.devices('host-b'))
        self.audit('host-b')
        self.assertEqual(['allocated', 'allocated', 'available'],
                         self._states())

    @properties.held(stock=CLAIM_LOST)
    def test_both_are_free_in_the_end(self):
        self.delete(self.server)
        self.audit('host-b')
        self.must(set(self._states()) == {'available'}, CLAIM_LOST,
                  self.devices('host-b'))
