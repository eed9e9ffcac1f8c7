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

"""A guest that has all that a migration has to claim and to give back."""

from tests.functional import releases
from tests.functional import settlement


class DevicesTestCase(settlement.SettlementTestCase):
    """A guest on A with a virtual function and a CPU of its own, besides."""

    def _start_hosts(self):
        self.enable_pci()
        self.flags(cpu_dedicated_set='0-1,4-5', cpu_shared_set='2-3,6-7',
                   group='compute')
        for host in ('host-a', 'host-b', 'host-c'):
            self.start_host(host, releases.pci_devices(1, 2))

    def _boot(self):
        return self.boot(
            'host-a', flavor=self.create_flavor(
                {'hw:cpu_policy': 'dedicated'}),
            networks=[{'port': self.neutron.port_1['id']},
                      {'port': self.create_sriov_port(1)}])

    def footprint(self, server):
        found = super(DevicesTestCase, self).footprint(server)
        found["guest's devices"] = {
            host: self.devices_of_guest(host, server)
            for host in self.processes}
        found['pinned CPUs'] = {
            host: self.pinned_cpus(host) for host in self.processes}
        return found

    def _audit_each(self):
        # what was claimed and not asked back ends with the next audit
        for host in list(self.processes):
            self.audit(host)

    def must_be_as_before(self):
        self._audit_each()
        super(DevicesTestCase, self).must_be_as_before()

    def must_be_on(self, host):
        self._audit_each()
        super(DevicesTestCase, self).must_be_on(host)
        after = self.footprint(self.server)
        for name in ('devices', 'pinned CPUs', "guest's devices"):
            self.must({host: 1} == {
                where: len(found) for where, found in after[name].items()
                if found}, settlement.LEFT_BEHIND, after)

    def must_delete(self):
        super(DevicesTestCase, self).must_delete()
        self._audit_each()
        for host in self.processes:
            self.assertEqual([], self.pinned_cpus(host))
            self.assertEqual({('available', None)},
                             set(self.devices(host).values()))
