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

"""A destination starts again while a guest with a mediated device is coming.

Nova claims a device on the destination for it, in memory. The migration may
wait in its queue on the source for long after that.
"""

from lxml import etree

from nova.compute import rpcapi

from tests.functional import cloud
from tests.functional import crashes
from tests.functional import process
from tests.functional import properties
from tests.functional import releases

GIVEN_TWICE = 'MDEV GIVEN TWICE'


@properties.twice
class DestinationForgetsItsClaims(cloud.CloudTestCase):

    def setUp(self):
        if not releases.mdevs_migrate_live():
            self.skipTest('guests with mediated devices cannot be migrated')
        super(DestinationForgetsItsClaims, self).setUp()
        releases.enable_mdevs(self, self._create_mdev)
        for host in ('host-a', 'host-b'):
            self.start_host(host, releases.mdev_capable_devices())
        self.flavor = self.create_flavor({'resources:VGPU': '1'})
        self.server = self.boot('host-a', flavor=self.flavor)
        self.assertEqual(1, len(self._mdevs('host-a', self.server)))

    def _create_mdev(self, parent, mdev_type, uuid):
        self.hypervisor(process.host_of_caller()).connection.mdev_info \
            .devices.update(releases.mdev(parent, mdev_type, uuid))

    def _mdevs(self, host, server):
        """The mediated devices in the XML of a guest on a host."""
        domain = self.hypervisor(host).domains[server['id']]
        return {source.get('uuid') for source in
                etree.fromstring(domain.XMLDesc(0)).findall(
                    './devices/hostdev[@type="mdev"]/source/address')}

    def _claims(self):
        return self.processes['host-b'].manager.driver.instance_claimed_mdevs

    def _ask_for_migration(self):
        """Let a live migration wait, when B has claimed a device for it."""
        self.cast = self.useFixture(crashes.LateCall(
            rpcapi.ComputeAPI, 'live_migration'))
        self.live_migrate(self.server, 'host-b')
        self.cast.wait()
        self.assertEqual([self.server['id']], list(self._claims()))

    def _migrate(self):
        self.cast.arrive()
        self.wait_for_job(self.server).complete()
        self.wait_until(
            lambda: self.nova_says(self.server) == (
                'active', None, 'host-b') and
            self.migrations(self.server)[-1].status == 'completed',
            lambda: '%s %s' % (self.nova_says(self.server),
                               self.migration_statuses(self.server)))

    @properties.held(stock=GIVEN_TWICE)
    def test_device_is_kept(self):
        self._ask_for_migration()
        self.restart_compute('host-b')
        self.audit('host-b')
        second = self.boot('host-b', flavor=self.flavor)
        self._migrate()
        mine = self._mdevs('host-b', self.server)
        self.assertEqual(1, len(mine))
        self.must(mine.isdisjoint(self._mdevs('host-b', second)),
                  GIVEN_TWICE, mine)

    @properties.held(stock=properties.HOLDS)
    def test_claim_ends_with_the_migration(self):
        self._ask_for_migration()
        self.restart_compute('host-b')
        self._migrate()
        self.assertEqual({}, dict(self._claims()))
        self.restart_compute('host-b')
        self.assertEqual({}, dict(self._claims()))
        self.audit('host-b')
        mine = self._mdevs('host-b', self.server)
        second = self.boot('host-b', flavor=self.flavor)
        self.assertTrue(mine.isdisjoint(self._mdevs('host-b', second)))
        # and it is free when the guest is gone
        self.delete(self.server)
        self.assertEqual(mine, self._mdevs('host-b', self.boot(
            'host-b', flavor=self.flavor)))

    @properties.guarded
    def test_claim_ends_with_a_migration_that_has_failed(self):
        """It fails while B is away, and nobody tells B."""
        self._ask_for_migration()
        claimed = set(self._claims()[self.server['id']])
        self.kill_compute('host-b')
        migration = self.migrations(self.server)[-1]
        migration.status = 'error'
        migration.save()
        instance = self.instance(self.server)
        instance.task_state = None
        instance.save()
        self.start_compute('host-b')
        # the audit of its start
        self.assertEqual({}, dict(self._claims()))
        self.assertEqual(claimed, self._mdevs('host-b', self.boot(
            'host-b', flavor=self.flavor)))

    @properties.guarded
    def test_claim_is_kept_as_long_as_it_may_come(self):
        self._ask_for_migration()
        for _ in range(2):
            self.restart_compute('host-b')
            self.audit('host-b')
            self.assertEqual([self.server['id']], list(self._claims()))
