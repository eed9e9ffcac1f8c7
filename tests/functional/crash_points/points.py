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

"""The points at which a nova-compute can be killed, and the kill at one.

A point is before or after one effect (:mod:`tests.functional.effects`) of an
operation on one host: before it takes effect, and when it has taken effect
and the caller has not learned of it. A message that a host receives is one,
too: the process is killed before it looks at it, or when it has done what was
asked, with no answer sent.

Where a name repeats it gets a number, the second one ``#2``. A point is
written ``rpc:pre_live_migration:after`` or ``db:migration_update#3:before``.
"""

import collections
import threading
import time

import oslo_messaging

from nova import service

from tests.functional import effects
from tests.functional import process
from tests.functional import releases

BEFORE = 'before'
AFTER = 'after'
SIDES = (BEFORE, AFTER)


class Killed(BaseException):
    """The nova-compute that the test's own thread runs was killed."""


class Points(effects.Effects):
    """Names the effects of a host's nova-compute, and kills it at a point.

    The process is frozen there for good: no exception, no ``finally``, no
    thread of it goes on with anything that outlives it. Where it settles, the
    threads end instead, at their next effect.

    :param cloud: the :class:`~tests.functional.cloud.CloudTestCase`
    """

    def __init__(self, cloud):
        super(Points, self).__init__(cloud)
        #: {host: the names of its effects since :meth:`watch`}
        self.taken = {}
        #: whether the process was killed at the point
        self.reached = False
        #: when any nova-compute last had an effect, on the monotonic clock
        self.last_effect = 0.0
        self._watches = self._only_settling = False
        self._point = None
        self._counts = collections.Counter()
        # {thread: (compute, incoming message)} of what is being handled
        self._handled = {}
        # {thread: compute} of the guard's threads that settle
        self._settling = {}
        # the same of killed processes, whose callers wait for answers
        self._unanswered = []

    def watch(self, *hosts, point=None, settling=False):
        """Name the effects of hosts from here on.

        :param settling: only those while the guard settles
        :param point: where to kill the one host's nova-compute, or None
        """
        self.taken = {host: [] for host in hosts}
        self._point, self.reached = point, False
        self._counts.clear()
        self._watches, self._only_settling = True, settling

    def stop_watching(self):
        self._watches = False

    def _setUp(self):
        from nova_migration_guard import guard
        from nova_migration_guard import settle
        super(Points, self)._setUp()
        for owner, name, wrapper in (
                (service.Service, 'start', self._start),
                (settle.Settler, 'settle', self._settle),
                (guard.Guard, '_settle_each', self._settle_each)):
            self.wrap(owner, name, wrapper)

    def _start(self, call, started):
        # known before it has started: it may be killed in the start
        starting = self._cloud.connections.starting
        if starting is not None:
            starting.service = started
        return call()

    def _settle(self, call, settler, *args):
        me = threading.get_ident()
        self._settling[me] = process.of_object(settler._parts.host._manager)
        try:
            return call()
        finally:
            del self._settling[me]

    def _settle_each(self, call, guard, *args):
        try:
            return call()
        finally:
            self._live(process.of_object(guard._parts.host._manager))

    def compute_of_thread(self):
        me = threading.get_ident()
        handled = self._handled.get(me)
        return (handled[0] if handled else
                self._settling.get(me) or process.of_caller())

    # ---- the kill

    def take(self, compute, name, call):
        return self._pass(compute, name, call)

    def look(self, compute, call):
        self._live(compute)
        return call()

    def receive(self, compute, name, incoming, call):
        if name in effects.QUESTIONS:
            return call()
        me = threading.get_ident()
        self._handled[me] = (compute, incoming)
        try:
            return self._pass(compute, 'rpc:' + name, call)
        finally:
            self._handled.pop(me, None)

    def _pass(self, compute, name, call):
        self._live(compute)
        self.last_effect = time.monotonic()
        if not self._watches or compute.host not in self.taken or (
                self._only_settling and
                compute not in list(self._settling.values())):
            return self._made(compute, call)
        key = (compute.host, name)
        self._counts[key] += 1
        if self._counts[key] > 1:
            name = '%s#%d' % (name, self._counts[key])
        self.taken[compute.host].append(name)
        if self._point == '%s:%s' % (name, BEFORE):
            self._kill(compute)
        try:
            return self._made(compute, call)
        finally:
            if self._point == '%s:%s' % (name, AFTER):
                self._kill(compute)

    def _made(self, compute, call):
        try:
            return call()
        finally:
            self.last_effect = time.monotonic()
            self._live(compute)

    def _kill(self, compute):
        if compute.alive and not self._cloud.world.over:
            compute.alive = False
            self._unanswered.extend(
                incoming for handler, incoming in
                list(self._handled.values()) if handler is compute)
            self.reached = True
        self._live(compute)

    def _live(self, compute):
        if not compute.alive and self._cloud.world.in_test_thread():
            raise Killed()
        if not compute.alive and compute in list(self._settling.values()):
            # the test's thread waits for those that settle
            raise releases.thread_exit()()
        compute.live_or_hang()

    # ---- what goes on around it

    def working(self):
        """Whether a nova-compute that lives handles a message."""
        return any(compute.alive
                   for compute, _ in list(self._handled.values()))

    def let_callers_time_out(self):
        """Those that wait for a killed process's answer wait no longer."""
        for incoming in self._unanswered:
            if incoming._reply_q is not None:
                incoming._reply_q.put((None, oslo_messaging.MessagingTimeout(
                    'the receiver was killed')))
        self._unanswered = []
