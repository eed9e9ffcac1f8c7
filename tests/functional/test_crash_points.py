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

"""nova-compute is killed at some of the points of a live migration.

The whole matrix: ``tox -e crash-points``.
"""

import os

import fixtures

from nova_migration_guard.nova_host import live_migration
from nova_migration_guard import settle
from nova_migration_guard import verdict
from tests.functional.crash_points import operations
from tests.functional.crash_points import short_form
from tests.functional.crash_points import testcase
from tests.functional import properties
from tests.functional import races
from tests.functional import releases

BROKEN = 'a rule is broken'
BLOCK = operations.LiveMigration.NAME


class CellTestCase(testcase.CrashPointTestCase):

    def play(self, side, point, world=operations.FINISHES, operation=BLOCK):
        cell = testcase.Cell(operation, side, point, world)
        self.run_cell(cell)
        self.assertTrue(cell.reached, str(cell))
        self.must(not cell.violations, BROKEN, '%s; %s' % (cell, cell.story))
        return cell


class OnceTestCase(CellTestCase):
    """On one release: what it shows is about the harness, or takes long."""

    def setUp(self):
        if releases.VERSION < (34,) or not releases.eventlet_is_used():
            self.skipTest('its turn is on 34 and eventlet')
        super(OnceTestCase, self).setUp()


class SomeCells(OnceTestCase):
    """Others with each commit."""

    CELLS = 6

    def _test(self, side):
        recorded = {side: self.record()[side]}
        for point, world in short_form.cells(
                recorded, side, operations.WORLDS, self.CELLS):
            self.play(side, point, world)

    @properties.guarded
    def test_source(self):
        self._test(operations.SOURCE)

    @properties.guarded
    def test_destination(self):
        self._test(operations.DESTINATION)


@properties.twice
class NamedCells(CellTestCase):
    """Kills that broke a rule once, with the guard as well."""

    @properties.held(stock=BROKEN)
    def test_attachment_that_no_mapping_names(self):
        if not releases.attachments_can_be_listed():
            self.skipTest('Nova does not ask for the attachments')
        self.play(operations.DESTINATION, 'cinder:attachment_create:after')

    @properties.held(stock=BROKEN)
    def test_binding_of_the_source(self):
        if not hasattr(self.neutron, '_port_bindings'):
            self.skipTest('the fixture of this release keeps no bindings')
        self.play(operations.DESTINATION,
                  'neutron:delete_port_binding:before')


class PlantedFaults(OnceTestCase):
    """The matrix turns red where the guard is broken."""

    def _must_be_red(self, rule, *args):
        broken = self.assertRaises(properties.Violation, self.play, *args)
        self.assertIn('%s, ' % rule, str(broken))

    @properties.guarded
    def test_no_wait_after_an_abort(self):
        def trusts(attempt):
            attempt._parts.jobs._call(self.server['id'], 5, 'abortJob')
            return verdict.Ruling(verdict.Verdict.ROLL_BACK, 'aborted')
        args = (operations.SOURCE, 'libvirt:migrateToURI3:after',
                operations.OUTRUNS)
        self.play(*args)
        self.useFixture(fixtures.MockPatchObject(
            settle._Attempt, '_abort', trusts))
        self.useFixture(races.CallBefore(
            live_migration.LiveMigrations, 'roll_back',
            lambda *args: self.world.running_job(
                self.server['id']).complete()))
        # which the job outruns
        self.ABORT_TIME = 60
        self._must_be_red('R4', *args)

    @properties.guarded
    def test_no_sync_of_the_journal(self):
        args = (operations.SOURCE, 'rpc:pre_live_migration:after')
        self.play(*args)
        self.useFixture(fixtures.MockPatchObject(os, 'fsync'))
        self._must_be_red('R4', *args)
