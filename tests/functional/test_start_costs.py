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

"""What a start asks of Nova's database and of libvirt: counted."""

import collections

import fixtures

from tests.functional import cloud
from tests.functional import instances
from tests.functional import properties
from tests.functional import queries


class CostsOfAStart(instances.Instances, cloud.CloudTestCase):

    def setUp(self):
        super(CostsOfAStart, self).setUp()
        self.start_host('host-a')
        self.asked = self.useFixture(queries.Calls())

    def _start(self):
        """Start nova-compute again.

        :returns: what the guard's start-up pass has asked: (queries, calls
            of libvirt)
        """
        from nova_migration_guard import guard
        calls = self.hypervisor('host-a').calls
        found = []
        original = guard.Guard.start_up

        def start_up(guardian):
            queried, called = len(self.asked.names), collections.Counter(calls)
            original(guardian)
            found.append((self.asked.names[queried:], calls - called))
        with fixtures.MockPatchObject(guard.Guard, 'start_up', start_up):
            self.restart_compute('host-a')
        self.assertEqual({}, self.held('host-a'))
        return found[0]

    @properties.guarded
    def test_idle_guests(self):
        for more in (3, 17):
            there = self.add_instances(more, 'host-a')
            count = len(self.hypervisor('host-a').domains)
            asked, calls = self._start()
            self.assertEqual(2, len(asked), asked)
            # one question of each kind for each domain, or for all
            self.assertEqual(
                {'lookupByUUIDString': count, 'XMLDesc': count,
                 'jobStats': count, 'blockJobInfo': count,
                 'listAllDomains': 2, 'getAllDomainStats': 1},
                {name: number for name, number in calls.items()
                 if name not in ('open', 'close', 'getLibVersion')})
        # a guest that is off is not asked for jobs
        self.hypervisor('host-a').domains[there[0]].destroy()
        calls = self._start()[1]
        self.assertEqual((count - 1, count - 1),
                         (calls['jobStats'], calls['blockJobInfo']))
