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

"""The network to B goes away while a migration copies memory.

An abort halts the guest then, until the network is back or TCP gives up.
Without an abort the guest goes on until libvirt's keepalive, after about half
a minute, gives the connection up.
"""

import time

from tests.lab import migration
from tests.lab import progress

#: Seconds for which a guest that runs is silent at most, on a busy machine.
SILENCE = 4
#: Seconds for which it is watched; it ends before the keepalive does.
WATCHED = 8
#: Seconds of an outage that is longer than the keepalive's patience; and until
#: a guest that was halted must run again.
OUTAGE = 45
RECOVERED = 90


class MemoryPhase(migration.MigrationTestCase):
    """nova-compute of A died, and memory is copied."""

    def begin_memory(self):
        self.begin()
        self.lab.kill_compute('host-a')
        self.lab.wait_for_memory(self.server)
        self.state('memory is copied')

    def begin_and_cut(self):
        """Cut the network just before nova-compute looks."""
        self.begin_memory()
        self.lab.start_compute('host-a', wait=False)
        self.lab.wait_until(
            lambda: self.lab.parts.services.computes['host-a'].has_logged(
                b'Loading compute driver'), self.server, 'nova-compute starts',
            interval=0.05)
        self.lab.cut_network('host-a', 'host-b')

    def silence(self, seconds, outage=None):
        """Watch the guest on A.

        :param outage: seconds after which the network is back
        :returns: the longest time without a tick, in seconds
        """
        heal = None if outage is None else time.monotonic() + outage
        host = self.lab.hosts['host-a']
        longest, last = 0, time.monotonic()
        tick, end = host.console_tick(self.server), last + seconds
        while time.monotonic() < end:
            time.sleep(0.1)
            if heal is not None and time.monotonic() > heal:
                self.lab.heal_network('host-a', 'host-b')
                heal = None
            now, seen = time.monotonic(), host.console_tick(self.server)
            if seen != tick:
                tick, last = seen, now
            longest = max(longest, now - last)
        progress.say('the guest was silent for %.1f s' % longest)
        return longest


class GuardedTestCase(MemoryPhase):
    """With the guard: it sees that B does not answer, and aborts nothing."""

    guard = True

    def test_killed(self):
        self.begin_and_cut()
        self.lab.wait_for_compute('host-a')
        self.assertLess(self.silence(WATCHED), SILENCE)
        self.assertEqual(('active', 'migrating', 'host-a'),
                         self.lab.nova_says(self.server))
        # what the user is told
        reasons = self.lab.why_failed(self.server, 'migration_guard_hold')
        self.assertIn('runs to host-b, which does not answer',
                      ' '.join(reasons))
        self.lab.heal_network('host-a', 'host-b')
        self.wait_until_settled()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-b')

    def test_outage_that_the_keepalive_notices(self):
        """The guest stands still no longer than if nobody does anything."""
        self.begin_memory()
        self.lab.cut_network('host-a', 'host-b')
        of_itself = self.silence(RECOVERED, OUTAGE)
        self.assertGreater(of_itself, SILENCE)
        self.lab.start_compute('host-a')
        self.wait_until_settled()
        self.must_be_as_before_the_migration()

        self.server = self.boot('host-a', volume=bool(self.lab.parts.full))
        self.begin_and_cut()
        guarded = self.silence(RECOVERED, OUTAGE)
        self.assertLess(guarded, of_itself + SILENCE)
        self.wait_until_settled()
        self.must_be_as_before_the_migration()


class StockTestCase(MemoryPhase):
    """Without the guard, on releases that abort the job at start-up."""

    guard = False

    def test_killed(self):
        """The abort halts the guest."""
        self.begin_and_cut()
        self.lab.wait_for_compute('host-a')
        self.assertGreater(self.silence(WATCHED), SILENCE)
        self.lab.heal_network('host-a', 'host-b')
