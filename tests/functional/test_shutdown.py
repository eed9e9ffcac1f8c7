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

"""nova-compute is asked to stop (SIGTERM) with live migrations under way."""

import threading

from oslo_config import cfg

from tests.functional import properties
from tests.functional import releases
from tests.functional import settlement

CONF = cfg.CONF

NOT_UNDONE = 'a migration is cancelled, and not undone'
IN_ERROR = 'ERROR, and the guest runs at its destination'


@properties.twice
class Shutdown(settlement.SettlementTestCase):

    def setUp(self):
        super(Shutdown, self).setUp()
        # the process ends after this time, whatever still runs (33, 34)
        if 'manager_shutdown_timeout' in CONF:
            self.flags(manager_shutdown_timeout=2)

    def _stop(self):
        """SIGTERM: what nova-compute does until its process ends.

        Nova's fixtures leave the thread pools out of it, which are shut down
        as its last step (34).
        """
        compute = self.processes['host-a']

        def stop():
            compute.service.stop()
            if compute.executors is not None:
                compute.executors.shutdown_all()
        thread = threading.Thread(target=stop)
        thread.daemon = True
        thread.start()

    def _end(self):
        """The process has ended, and the next one starts."""
        self.kill_compute('host-a')
        self.start_compute('host-a')

    def _status(self, server):
        return ([None] + [migration.status for migration in
                          self.migrations(server)])[-1]

    @properties.held(stock=NOT_UNDONE)
    def test_queued_is_undone(self):
        other = self.boot('host-a', name='other')
        before = self.footprint(other)
        self.job = self.begin_migration(self.server, 'host-b')
        self.live_migrate(other, 'host-b')
        self.wait_until(
            lambda: self._status(other) == 'queued' and
            self.processes['host-a'].manager._waiting_live_migrations[
                other['id']][1], 'it is queued')
        self._stop()
        self.wait_until_or_violation(
            lambda: self._status(other) == 'cancelled' and
            self.footprint(other) == before, NOT_UNDONE,
            lambda: self.footprint(other))
        # what runs is left to libvirt and the journal
        self.assertTrue(self.job.running)
        self.assertEqual(1, len(self.journaled('host-a')))
        self._end()
        self.assertEqual('cancelled', self.job.outcome)
        self.settle('host-a')
        self.must_be_as_before()

    @properties.held(stock=properties.HOLDS, since=[
        ((34,), IN_ERROR, 'the thread pools that post-migration needs are '
         'shut down before the migration ends')])
    def test_ends_meanwhile(self):
        job = self.begin_migration(self.server, 'host-b')
        self._stop()
        if releases.VERSION >= (34,):
            self.wait_until(
                lambda: self.processes['host-a'].executors._shutdown,
                'the pools are shut down')
        job.complete()
        self.wait_until(
            lambda: self._status(self.server) == 'error' or
            self._status(self.server) == 'completed' and
            not self.footprint(self.server)["migrations' allocations"] or
            self.guard and self.held('host-a'), 'it has ended')
        self._end()
        if self.guard:
            self.settle('host-a')
        self.must(self.nova_says(self.server) ==
                  ('active', None, 'host-b'), IN_ERROR,
                  self.nova_says(self.server))
        self.must_be_on('host-b')
