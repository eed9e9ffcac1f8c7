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

"""An instance arrives on a host while its audit runs (bug 1896463)."""

from nova.virt.libvirt import driver

from tests.functional import cloud
from tests.functional import properties
from tests.functional import races
from tests.functional import releases
from tests.functional import waiting

GIVEN_TWICE = 'VF GIVEN TWICE'

#: On stock Nova. An evacuation saves host and status under the lock of the
#: audit where that is fixed; a live migration does not anywhere.
EVACUATION_ON_STOCK = (GIVEN_TWICE if releases.evacuation_races_audit() else
                       properties.HOLDS)


class ArrivalTestCase(cloud.CloudTestCase):
    """Two hosts with one virtual function each, and a guest that moves."""

    #: Where the guest is in the end.
    HOST = 'host-b'

    def setUp(self):
        super(ArrivalTestCase, self).setUp()
        self.enable_pci(alias='vf')
        self._start_hosts()

    def _start_hosts(self):
        for host in ('host-a', 'host-b'):
            self.start_host(host, releases.pci_devices())

    def _boot_with_device(self, host, **kwargs):
        """Boot a guest that has the host's virtual function."""
        server = self.boot(host, **kwargs)
        self.assertEqual({('allocated', server['id'])},
                         set(self.devices(host).values()))
        self.assertEqual(1, len(self.devices_of_guest(host, server)))
        return server

    def _has_arrived(self, server):
        return (self.nova_says(server).host == 'host-b' and
                self.migrations(server)[-1].status in ('done', 'completed'))

    def _wait_for_arrival(self, server):
        self.wait_until(
            lambda: self._has_arrived(server) and self.nova_says(server) ==
            ('active', None, 'host-b'),
            lambda: '%s %s' % (self.nova_says(server),
                               self.migration_statuses(server)))

    def _must_have_device(self, server, another):
        """The device is the guest's alone.

        :param another: makes a second guest that wants the device, and
            returns it
        """
        # the next audit does not mend what the first one broke
        self.audit(self.HOST)
        second = another()
        # Train names it twice in a guest that came back by a revert
        mine = set(self.devices_of_guest(self.HOST, server))
        self.assertEqual(1, len(mine))
        self.must(
            mine.isdisjoint(self.devices_of_guest(self.HOST, second)),
            GIVEN_TWICE, '%s, %s' % (mine, self.devices(self.HOST)))
        self.assertEqual('ERROR', self.api.get_server(second['id'])['status'])
        self.assertEqual({('allocated', server['id'])},
                         set(self.devices(self.HOST).values()))

    def _must_be_free(self, host):
        """One quiet audit, and nothing is kept that no guest has."""
        self.audit(host)
        self.assertEqual({('available', None)},
                         set(self.devices(host).values()))

    def _race(self, server, owner, step, is_open=True):
        """Let B's audit sleep over the arrival.

        :param owner: the class of the last method that runs on B before the
            arrival is written down
        :param step: its name
        :param is_open: whether the arrival does not wait for the audit
        :returns: the :class:`~tests.functional.races.AuditAcrossArrival`
        """
        audit = self.useFixture(races.AuditAcrossArrival(
            self, 'host-b', lambda: self._has_arrived(server),
            patience=waiting.TIMEOUT if is_open else 3))

        def on_b(virt_driver):
            found = virt_driver._host.get_connection().process.host
            if found == 'host-b':
                audit.begin()
        self.useFixture(races.CallAfter(owner, step, on_b))
        return audit


@properties.twice
class EvacuationRacesAudit(ArrivalTestCase):
    """A guest is evacuated from A to B."""

    def _by_alias(self):
        """How to ask for the device, twice: by flavor."""
        flavor = self.create_flavor({'pci_passthrough:alias': 'vf:1'})
        return {'flavor': flavor}, {'flavor': flavor}

    def _by_port(self):
        """How to ask for the device, twice: by SR-IOV port."""
        flavor = self.create_flavor()
        return tuple({'flavor': flavor, 'networks': [
            {'port': self.create_sriov_port(number)}]} for number in (1, 2))

    def _evacuate(self, first, racing):
        server = self._boot_with_device('host-a', **first)
        self.crash_host('host-a')
        self.force_down('host-a')
        audit = racing and self._race(
            server, driver.LibvirtDriver, 'spawn',
            is_open=releases.evacuation_races_audit())
        self.evacuate(server, 'host-b')
        self._wait_for_arrival(server)
        self.assertEqual({'host-b': 'running'}, {
            host: state for host, state in self.where(server).items()
            if state != 'shutoff'})
        if audit:
            audit.end()
            self.assertEqual(releases.evacuation_races_audit(),
                             audit.between)
        return server

    def _test_race(self, how):
        first, second = how()
        server = self._evacuate(first, racing=True)
        self._must_have_device(
            server, lambda: self.boot_any('host-b', **second))

    @properties.held(stock=EVACUATION_ON_STOCK)
    def test_device_by_alias(self):
        self._test_race(self._by_alias)

    @properties.held(stock=EVACUATION_ON_STOCK)
    def test_device_by_port(self):
        self._test_race(self._by_port)

    @properties.held(stock=properties.HOLDS)
    def test_no_race(self):
        """The same steps with quiet audits: the tests make no hole."""
        first, second = self._by_alias()
        server = self._evacuate(first, racing=False)
        self.audit('host-b')
        self._must_have_device(
            server, lambda: self.boot_any('host-b', **second))

    @properties.held(stock=properties.HOLDS)
    def test_nothing_is_kept(self):
        first, _ = self._by_alias()
        server = self._evacuate(first, racing=True)
        self.revive_host('host-a')
        self._must_be_free('host-a')
        self.delete(server)
        self._must_be_free('host-b')


@properties.twice
class LiveMigrationRacesAudit(ArrivalTestCase):
    """A guest is live-migrated from A to B."""

    def _migrate(self, racing):
        flavor = self.create_flavor()
        server = self._boot_with_device(
            'host-a', flavor=flavor,
            networks=[{'port': self.create_sriov_port(1)}])
        audit = racing and self._race(server, driver.LibvirtDriver,
                                      'post_live_migration_at_destination')
        job = self.begin_migration(server, 'host-b')
        job.complete()
        self._wait_for_arrival(server)
        if audit:
            audit.end()
            self.assertTrue(audit.between)
        self.assertEqual({'host-b': 'running'}, self.where(server))
        return server

    def _boot_another(self):
        return self.boot_any('host-b', flavor='small', networks=[
            {'port': self.create_sriov_port(2)}])

    @properties.held(stock=GIVEN_TWICE)
    def test_device_by_port(self):
        server = self._migrate(racing=True)
        self._must_have_device(server, self._boot_another)

    @properties.held(stock=properties.HOLDS)
    def test_no_race(self):
        server = self._migrate(racing=False)
        self._must_have_device(server, self._boot_another)

    @properties.held(stock=properties.HOLDS)
    def test_nothing_is_kept(self):
        server = self._migrate(racing=True)
        self._must_be_free('host-a')
        self.delete(server)
        self._must_be_free('host-b')
