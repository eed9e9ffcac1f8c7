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

"""Audits in the middle of a move, where neither of their lists names it."""

from nova.compute import manager
from nova.compute import rpcapi
from nova import exception

from tests.functional import properties
from tests.functional import races
from tests.functional import test_evacuation_races_audit as arrival

GIVEN_TWICE = arrival.GIVEN_TWICE


@properties.twice
class AuditBeforeDestinationIsNamed(arrival.ArrivalTestCase):
    """A live migration has claimed B's device; its record names no B yet.

    The conductor saves the destination after it has bound the ports there.
    """

    def setUp(self):
        super(AuditBeforeDestinationIsNamed, self).setUp()
        self.flavor = self.create_flavor()
        self.server = self._boot_with_device(
            'host-a', flavor=self.flavor,
            networks=[{'port': self.create_sriov_port(1)}])
        self.failure = None
        self.useFixture(races.CallAfter(
            manager.ComputeManager, 'check_can_live_migrate_destination',
            self._claimed))

    def _claimed(self, compute_manager):
        self.assertEqual({('claimed', self.server['id'])},
                         set(self.devices('host-b').values()))
        self.assertIsNone(self.migrations(self.server)[-1].dest_node)
        self.audit('host-b')
        if self.failure:
            raise self.failure

    def _boot_another(self):
        return self.boot_any('host-b', networks=[
            {'port': self.create_sriov_port(2)}], flavor=self.flavor)

    @properties.held(stock=GIVEN_TWICE)
    def test_claim_is_kept(self):
        self.begin_migration(self.server, 'host-b').complete()
        self._wait_for_arrival(self.server)
        self._must_have_device(self.server, self._boot_another)

    @properties.held(stock=properties.HOLDS)
    def test_claim_ends_with_its_reason(self):
        self.failure = exception.MigrationPreCheckError(reason='no')
        self.live_migrate(self.server, 'host-b')
        self.wait_until(
            lambda: self.nova_says(self.server).task_state is None and
            self.migrations(self.server)[-1].status == 'error',
            lambda: self.migration_statuses(self.server))
        self._must_be_free('host-b')


@properties.twice
class AuditBeforeRevertIsFinished(arrival.ArrivalTestCase):
    """A cold migration A -> B is reverted, and A has not taken it back yet.

    B has ended the record before it tells A.
    """

    HOST = 'host-a'

    def setUp(self):
        super(AuditBeforeRevertIsFinished, self).setUp()
        self.flavor = self.create_flavor({'pci_passthrough:alias': 'vf:1'})
        self.server = self._boot_with_device('host-a', flavor=self.flavor)
        self.audits = 0
        self.api.post_server_action(self.server['id'], {'migrate': None})
        self.wait_for_server(self.server,
                             lambda s: s['status'] == 'VERIFY_RESIZE')

    def _revert(self):
        self.api.post_server_action(self.server['id'], {'revertResize': None})
        self.wait_until(
            lambda: self.nova_says(self.server) == (
                'active', None, 'host-a'),
            lambda: '%s %s' % (self.nova_says(self.server),
                               self.migration_statuses(self.server)))

    def _audit_before_it_is_finished(self, compute_manager):
        self.assertEqual('reverted', self.migrations(self.server)[-1].status)
        self.assertEqual('host-b', self.nova_says(self.server).host)
        self.audits += 1
        self.audit('host-a')

    def _race(self):
        self.useFixture(races.CallBefore(
            manager.ComputeManager, 'finish_revert_resize',
            self._audit_before_it_is_finished))

    def _boot_another(self):
        return self.boot_any('host-a', flavor=self.flavor)

    @properties.held(stock=GIVEN_TWICE)
    def test_devices_are_kept(self):
        self._race()
        self._revert()
        self.assertEqual(1, self.audits)
        self._must_have_device(self.server, self._boot_another)

    @properties.held(stock=GIVEN_TWICE)
    def test_devices_are_kept_by_the_first_audit(self):
        """nova-compute on A dies before B has told it, and starts again.

        Its first audit runs before it listens to anyone.
        """
        self.useFixture(races.CallBefore(
            rpcapi.ComputeAPI, 'finish_revert_resize',
            lambda api: self.restart_compute('host-a')))
        self._revert()
        self._must_have_device(self.server, self._boot_another)

    @properties.held(stock=properties.HOLDS)
    def test_nothing_is_kept(self):
        self._race()
        self._revert()
        self._must_be_free('host-b')
        self.delete(self.server)
        self._must_be_free('host-a')
