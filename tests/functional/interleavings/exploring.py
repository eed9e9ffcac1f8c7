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

"""Every interleaving of a recorded move with one audit, on copies."""

import collections
import copy
import threading
from unittest import mock

from nova import context as nova_context

from tests.functional.interleavings import picture
from tests.functional.interleavings import tracker

#: reads: [(name of the function that read, step at which it did)];
#: before, after: the tracker.Usage at the audit's begin and end; error: what
#: ended the audit before its end, or None.
Outcome = collections.namedtuple('Outcome', 'reads before after error')

#: What an audit does that is not about what a host holds: Placement, metrics,
#: and saving the node.
_LEFT_OUT = ('_update', '_remove_deleted_instances_allocations',
             '_get_host_metrics', '_ensure_compute_id_for_instances')


class Explorer(object):
    """Runs a host's audit on the copies that a recording has made.

    :param manager: the host's ComputeManager, which has nothing to do
    :param host: the host, which is also its node
    :param steps: the :class:`~tests.functional.interleavings.stepping.Steps`
    :param uuid: the UUID of the instance that moved
    :param positions: [:class:`~.recording.Position`], one for each step
    """

    def __init__(self, manager, host, steps, uuid, positions):
        self._manager = manager
        self._host = host
        self._steps = steps
        self._uuid = uuid
        self._positions = positions
        self._resources = self._ask_driver()

    def _ask_driver(self):
        """What the driver tells an audit of the host; no move changes it."""
        found = []
        with mock.patch.object(
                self._manager.rt, '_update_available_resource',
                lambda context, resources, startup=False:
                found.append(resources)):
            self._manager.rt.update_available_resource(
                nova_context.get_admin_context(), self._host)
        return found[0]

    def outcomes(self):
        """Run every interleaving.

        :returns: an iterator of :class:`Outcome`
        """
        waiting = [(step,) for step in self._begins()]
        while waiting:
            prefix = waiting.pop()
            outcome = self._audit(prefix)
            yield outcome
            for number in range(len(prefix), len(outcome.reads)):
                kept = tuple(step for _, step in outcome.reads[:number])
                waiting.extend(kept + (step,) for step in
                               self._later(*outcome.reads[number]))

    def _begins(self):
        """The steps at which it makes a difference that an audit begins."""
        part = picture.part('instance_get_all_by_host_and_node')
        last = None
        for step, position in enumerate(self._positions):
            if position.memory is None:
                continue
            now = (position.asked, part(position.picture))
            if now != last:
                yield step
            last = now

    def _later(self, name, step):
        """The later steps at which a read would return something else."""
        part = picture.part(name)
        begun = self._positions[step]
        last = part(begun.picture)
        for later in range(step + 1, len(self._positions)):
            position = self._positions[later]
            if position.asked != begun.asked:
                return
            now = part(position.picture)
            if now not in (last, part(begun.picture)):
                yield later
            last = now

    def _audit(self, prefix):
        """Run one audit.

        :param prefix: the steps of its first reads; the others come at once
        """
        memory = tracker.copied(self._positions[prefix[0]].memory)
        before = tracker.usage(memory, self._host, self._uuid)
        reads = []

        def read(name, call):
            step = prefix[min(len(reads), len(prefix) - 1)]
            reads.append((name, step))
            return call(self._positions[step].copy)

        own = tracker.swap(self._manager.rt, memory)
        try:
            error = self._run(read)
        finally:
            memory = tracker.swap(self._manager.rt, own)
        return Outcome(tuple(reads), before,
                       tracker.usage(memory, self._host, self._uuid), error)

    def _run(self, read):
        resources = copy.deepcopy(self._resources)
        patches = [mock.patch.object(self._manager.rt, name)
                   for name in _LEFT_OUT if hasattr(self._manager.rt, name)]
        for patch in patches:
            patch.start()
        self._steps.reader = read
        self._steps.audits.add(threading.get_ident())
        try:
            self._manager.rt._update_available_resource(
                nova_context.get_admin_context(), resources)
        except Exception as e:
            # Nova's periodic task logs it and goes on to the next node
            return '%s: %s' % (type(e).__name__, e)
        finally:
            self._steps.audits.discard(threading.get_ident())
            self._steps.reader = None
            for patch in patches:
                patch.stop()
        return None
