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

"""Runs the named scenarios, each as a test.

``NMG_GUARD`` says whether with the guard (``on``, the default) or without it
(``off``). ``NMG_EVENTS`` names the file that the record of a run is written
to, as one JSON object; without it no file is written.
"""

import os

from tests.functional import cloud
from tests.functional import releases
from tests.replay import evacuation_race
from tests.replay import recorder as recorders
from tests.replay import scenarios

SCENARIOS = {
    'restart-mid-migration': scenarios.RestartMidMigration,
    'evacuation-race': evacuation_race.EvacuationRace,
    'completed-while-down': scenarios.CompletedWhileDown,
}


class ScenarioTestCase(cloud.CloudTestCase):
    """Stock Nova comes to what its report says; a guarded one is safe."""

    GUARD = os.environ.get('NMG_GUARD', 'on') == 'on'

    def _play(self, name):
        scenario = SCENARIOS[name]
        recorder = recorders.Recorder()
        verdict = scenario(self, recorder).play()
        recorder.write(name, self.guard, releases.RELEASE, verdict,
                       verdict == scenarios.SAFE)
        self.assertEqual(scenarios.SAFE if self.guard else scenario.STOCK,
                         verdict, recorder.events[-1])

    def test_restart_mid_migration(self):
        self._play('restart-mid-migration')

    def test_evacuation_race(self):
        self._play('evacuation-race')

    def test_completed_while_down(self):
        self._play('completed-while-down')
