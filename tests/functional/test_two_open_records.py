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

"""Two live migrations of one instance are open when nova-compute dies.

An operator's reset-state lets the API accept a second one while the first has
not ended.
"""

from nova.compute import rpcapi

from tests.functional import crashes
from tests.functional import properties
from tests.functional import settlement

LEFT_BEHIND = settlement.LEFT_BEHIND
NOT_FINISHED = 'the migration was not finished'
NEVER_ENDS = 'a record never ends'


@properties.twice
class TwoOpenRecords(settlement.SettlementTestCase):
    """To B and to C, and only one of them has reached libvirt."""

    def _second(self, host):
        self.act(self.server, 'os-resetState', {'state': 'active'})
        self.live_migrate(self.server, host)

    def _first_runs(self):
        """The one to B runs, and the one to C has not arrived at A."""
        self.job = self.begin_migration(self.server, 'host-b')
        self.cast = self._late_cast()
        self._second('host-c')
        self.cast.wait()
        self._must_be_open('running', 'accepted')

    def _second_runs(self):
        """The one to C runs, and the one to B has not arrived at A."""
        self.cast = self._late_cast()
        self.live_migrate(self.server, 'host-b')
        self.cast.wait()
        self.cast.let_others_pass()
        self._second('host-c')
        self.job = self.wait_for_job(self.server)
        self.wait_until(lambda: self.migrations(self.server)[-1].status ==
                        'running', 'the migration is running')
        self._must_be_open('accepted', 'running')

    def _late_cast(self):
        return self.useFixture(crashes.LateCall(
            rpcapi.ComputeAPI, 'live_migration'))

    def _must_be_open(self, *statuses):
        self.assertEqual(
            [('host-b', statuses[0]), ('host-c', statuses[1])],
            self.migration_statuses(self.server))

    def _start(self):
        self.start_compute('host-a')
        if self.guard:
            self.settle('host-a')

    def _must_be_rolled_back(self):
        self.kill_compute('host-a')
        self._start()
        if self.world.running_job(self.server['id']):
            self.job.cancel()
        self.must_be_as_before()
        self.cast.arrive()
        self.wait_until(
            lambda: 'The live migration is refused' in self.logged(
                about=self.server['id']), 'it is refused')
        self.must_be_as_before()
        self.must_live_on()

    @properties.held(stock=LEFT_BEHIND)
    def test_first_is_rolled_back(self):
        self._first_runs()
        self._must_be_rolled_back()

    @properties.held(stock=LEFT_BEHIND)
    def test_second_is_rolled_back(self):
        self._second_runs()
        self._must_be_rolled_back()

    def _must_be_finished(self, host, *statuses):
        self.kill_compute('host-a')
        self.job.complete()
        self._start()
        self.must(self.nova_says(self.server).host == host, NOT_FINISHED,
                  self.nova_says(self.server))
        self.must_be_on(host)
        self.assertEqual(
            [('host-b', statuses[0]), ('host-c', statuses[1])],
            self.migration_statuses(self.server))
        self.must_delete()

    @properties.held(stock=NOT_FINISHED)
    def test_first_is_finished(self):
        self._first_runs()
        self._must_be_finished('host-b', 'completed', 'cancelled')

    @properties.held(stock=NOT_FINISHED)
    def test_second_is_finished(self):
        self._second_runs()
        self._must_be_finished('host-c', 'cancelled', 'completed')

    @properties.guarded
    def test_journal_is_lost(self):
        """The one that has the guest is found by asking both."""
        self.api.delete_server_volume(self.server['id'], self.volume)
        self.wait_until(lambda: not self.api.get_server_volumes(
            self.server['id']), 'the volume is detached')
        self._first_runs()
        other = self.migrations(self.server)[-1]
        other.status = 'running'
        other.save()
        self.lose_journal('host-a')
        self._must_be_finished('host-b', 'completed', 'cancelled')

    @properties.guarded
    def test_second_is_refused_while_the_first_runs(self):
        """The journal keeps what the first one needs."""
        job = self.begin_migration(self.server, 'host-b')
        entry = self.journaled('host-a')[0].read_text()
        self._second('host-c')
        self.wait_until(lambda: self.migration_statuses(self.server)[1:] == [
            ('host-c', 'cancelled')], 'it is refused')
        self.assertEqual(entry, self.journaled('host-a')[0].read_text())
        job.complete()
        self.wait_until(lambda: self.nova_says(self.server).host == 'host-b',
                        'it has arrived')
        self.wait_until(lambda: not self.journaled('host-a'),
                        'it is crossed out')
        self.must_be_on('host-b')
