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

"""The steps of a settlement, and a nova-compute that is killed at one.

A step is an effect (:mod:`tests.functional.effects`) that a settlement has.
"""

import threading

from nova import service

from tests.functional import effects
from tests.functional import process
from tests.functional import releases


class Killed(BaseException):
    """The nova-compute of the test's thread was killed."""


class Steps(effects.Effects):
    """Sees the steps of settlements, and kills a nova-compute at one.

    A killed process ends at once: the thread that came to the step ends, and
    so does every other one at its next step. What ``finally`` does on the way
    is nothing, or a step. The test's own thread gets :class:`Killed`.

    :param cloud: the :class:`~tests.functional.cloud.CloudTestCase`
    """

    def __init__(self, cloud):
        super(Steps, self).__init__(cloud)
        self._at = None
        #: {thread: its ComputeProcess} of those that settle
        self._settling = {}
        #: the names of the steps since :meth:`watch`
        self.taken = []

    def watch(self, at):
        """Count from here, and kill before one of the steps.

        :param at: its number; the first one is 1
        """
        self.taken = []
        self._at = at

    def _setUp(self):
        from nova_migration_guard import guard
        from nova_migration_guard import settle
        from nova_migration_guard import workers
        super(Steps, self)._setUp()
        for owner, name, wrapper in (
                (settle.Settler, 'settle', self._settle),
                (workers.Workers, 'call', self._wait),
                (workers.Workers, 'call_each', self._wait),
                (guard.Guard, '_settle_each', self._settle_each),
                (service.Service, 'start', self._start)):
            self.wrap(owner, name, wrapper)

    # ---- which process a thread is of

    def _start(self, call, started):
        # known before it has started: it may be killed in the start
        starting = self._cloud.connections.starting
        if starting is not None:
            starting.service = started
        return call()

    def _settle(self, call, settler, *args):
        me = threading.get_ident()
        compute = process.of_object(settler._parts.host._manager)
        self._settling[me] = compute
        try:
            return call()
        finally:
            del self._settling[me]

    def _settle_each(self, call, guard, *args):
        try:
            return call()
        finally:
            compute = process.of_object(guard._parts.host._manager)
            if not compute.alive:
                raise Killed()

    # ---- what a step is

    def compute_of_thread(self):
        return self._settling.get(threading.get_ident())

    def sees(self, compute):
        return compute in list(self._settling.values())

    def look(self, compute, call):
        self._live_or_end(compute)
        return call()

    def _wait(self, call, *args):
        compute = self.compute_of_thread()
        result = call()
        if compute is not None:
            self._live_or_end(compute)
        return result

    @staticmethod
    def _live_or_end(compute):
        if not compute.alive:
            raise releases.thread_exit()()

    def take(self, compute, name, call):
        self._live_or_end(compute)
        self.taken.append(name)
        if len(self.taken) == self._at:
            compute.alive = False
            self._live_or_end(compute)
        return call()
