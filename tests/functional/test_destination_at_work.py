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

"""A destination that still works for a migration whose source has died.

It has been asked by the source's nova-compute, and goes on by itself.
"""

from nova.virt.libvirt import driver
from nova.volume import cinder

from tests.functional import properties
from tests.functional import settlement

LEFT_BEHIND = settlement.LEFT_BEHIND


@properties.twice
class DestinationAtWork(settlement.SettlementTestCase):

    def _restart_during(self, stop):
        stop.wait()
        self.restart_compute('host-a')
        if self.guard:
            self.assertIn('it still works for the migration',
                          self.held('host-a')[self.server['id']].reason)
            self.assertEqual('migrating',
                             self.nova_says(self.server).task_state)
        stop.go_on()
        self.wait_until(lambda: not self._unfinished_events(),
                        'host-b has ended')
        if self.guard:
            self.settle('host-a')

    def _unfinished_events(self):
        found = []
        for action in self.api.get_instance_actions(self.server['id']):
            found.extend(self.api.api_get(
                '/servers/%s/os-instance-actions/%s' % (
                    self.server['id'], action['request_id'])).body[
                        'instanceAction']['events'])
        return [event for event in found
                if event['host'] == 'host-b' and not event['finish_time']]

    @properties.held(stock=LEFT_BEHIND)
    def test_it_prepares(self):
        stop = self.stop_at('host-b', cinder.API, 'attachment_create')
        self.live_migrate(self.server, 'host-b')
        self._restart_during(stop)
        self.must_be_as_before()
        self.must_live_on()

    @properties.held(stock=LEFT_BEHIND)
    def test_it_takes_over(self):
        job = self.begin_migration(self.server, 'host-b')
        stop = self.stop_at('host-b', driver.LibvirtDriver,
                            'post_live_migration_at_destination')
        job.complete()
        self._restart_during(stop)
        # stock Nova starts with another state on some releases
        self.must(self.nova_says(self.server).host == 'host-b', LEFT_BEHIND,
                  self.nova_says(self.server))
        self.must_be_on('host-b')
        self.must_migrate_to('host-c')
        self.must_delete()
