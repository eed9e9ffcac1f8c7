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

"""What the gating job runs on devstack, on the lab."""

from tests.lab import base
from tests.lab import scenario_cloud
from tests.scenarios import __main__ as command
from tests.scenarios import cloud
from tests.scenarios import steps
from tests.scenarios import stories


class LateCloud(scenario_cloud.LabCloud):
    """nova-compute is killed when the migration has ended."""

    def kill_compute(self, host):
        server, = self._lab.servers('scenario')
        self._lab.finish_migration(server)
        super(LateCloud, self).kill_compute(host)


class ScenarioTestCase(base.LabTestCase):

    #: Seconds for what the lab does.
    patience = steps.PATIENCE

    def tell(self, name):
        self.addCleanup(self._forget_all)
        stories.tell(name, scenario_cloud.LabCloud(self.lab),
                     patience=self.patience)

    def _forget_all(self):
        self.lab.mend()
        for server in self.lab.servers('scenario'):
            self.lab.forget(server)


class GuardedTestCase(ScenarioTestCase):
    """Every rule holds."""

    guard = True

    @base.in_ci(base.FULL)
    def test_restart_in_live_migration(self):
        self.tell('restart-in-live-migration')

    @base.in_ci(base.FULL)
    def test_migration_ends_while_down(self):
        self.tell('migration-ends-while-down')

    @base.in_ci(base.FULL)
    def test_interrupted_snapshot(self):
        self.tell('interrupted-snapshot')

    def test_too_late(self):
        """A kill that shows nothing has an exit code of its own."""
        self.addCleanup(self._forget_all)
        self.assertEqual(command.TOO_LATE, command.run(
            'restart-in-live-migration', lambda: LateCloud(self.lab)))


class StockTestCase(ScenarioTestCase):
    """One is broken, and the scenario says so."""

    guard = False
    #: What does not come need not be waited for that long.
    patience = 120

    def must_be_broken(self, name, how):
        error = self.assertRaises(cloud.Violation, self.tell, name)
        self.assertIn(how, str(error))

    @base.in_ci(base.FULL)
    def test_restart_in_live_migration(self):
        self.must_be_broken('restart-in-live-migration',
                            'Placement has it on host-a')

    @base.in_ci(base.FULL)
    def test_migration_ends_while_down(self):
        self.must_be_broken('migration-ends-while-down',
                            'it is idle on host-b')

    @base.in_ci(base.FULL)
    def test_interrupted_snapshot(self):
        self.must_be_broken('interrupted-snapshot',
                            'no block job is left behind an idle guest')
