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

"""A model of a region where every nova-compute is restarted at once.

Only the settler's pauses are the real ones. Every instance in flight is held
at its start and stays so: the worst case. What is counted is when the hosts'
settlers try again, which is when they ask the conductors and each other.
"""

import collections
import heapq
import random

from oslotest import base

from nova_migration_guard import pauses
from tests.benchmarks import measuring

HOSTS = 10000
INSTANCES = 20       # of a host
IN_FLIGHT = 0.01     # of the instances
RESTARTED = 10       # seconds over which the hosts start
HOUR = 3600

INTERVAL, LONGEST = 30, 600    # the options' defaults

#: Queries to the conductor and questions to other hosts of one attempt: the
#: instance, its open records, its actions and their events; the guest.
QUERIES = 4


def attempts(jitter, seed=1):
    """When held instances are tried again.

    :param jitter: see :data:`nova_migration_guard.pauses.JITTER`
    :returns: {second: attempts}
    """
    chance = random.Random(seed)  # noqa: S311
    found = collections.Counter()
    paused = pauses.Pauses(INTERVAL, LONGEST)
    paused._random = chance
    kept = pauses.JITTER
    pauses.JITTER = jitter
    try:
        for _ in range(HOSTS):
            held = sum(chance.random() < IN_FLIGHT for _ in range(INSTANCES))
            if held:
                _host(paused, chance.uniform(0, RESTARTED), held, found)
    finally:
        pauses.JITTER = kept
    return found


def _host(paused, now, held, found):
    """Add what one host's settler does within an hour."""
    due = [(now + paused.after(1), 1) for _ in range(held)]
    heapq.heapify(due)
    while now < HOUR:
        now += paused.between_rounds()
        while due[0][0] <= now:
            tried = due[0][1] + 1
            heapq.heapreplace(due, (now + paused.after(tried), tried))
            found[int(now)] += 1


class Region(base.BaseTestCase):

    def test_restart(self):
        peaks = {}
        for jitter in (0, 0.1, 0.25, 0.5):
            found = attempts(jitter)
            # a start that many hosts make together is in any of them
            peaks[jitter] = max(found.values())
            late = [count for second, count in found.items()
                    if second >= HOUR / 2]
            measuring.write(
                'region', jitter=jitter, peak=peaks[jitter],
                late=max(late), mean=sum(found.values()) / HOUR,
                queries=peaks[jitter] * QUERIES)
        # with the jitter that is there the peaks are a third of those without
        self.assertLess(peaks[pauses.JITTER], peaks[0] / 2)
