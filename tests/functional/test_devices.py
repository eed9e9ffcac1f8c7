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

"""Devices and pinned CPUs of a guest whose migration is settled."""

from tests.functional import devices
from tests.functional import properties
from tests.functional import settlement

LEFT_BEHIND = settlement.LEFT_BEHIND
NOT_FINISHED = 'the migration was not finished'


@properties.twice
class Devices(devices.DevicesTestCase):

    @properties.held(stock=LEFT_BEHIND)
    def test_roll_back(self):
        self.begin_migration(self.server, 'host-b')
        self.restart_compute('host-a')
        self.must_be_as_before()
        self.must_live_on()

    @properties.held(stock=NOT_FINISHED)
    def test_finish(self):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        job.complete()
        self.start_compute('host-a')
        if self.guard:
            self.settle('host-a')
        self.must(self.nova_says(self.server).host == 'host-b', NOT_FINISHED,
                  self.footprint(self.server))
        self.must_be_on('host-b')
        self.must_migrate_to('host-a')
        self.must_migrate_to('host-c')
        self.must_delete()
