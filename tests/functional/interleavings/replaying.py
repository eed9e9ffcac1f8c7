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

"""One interleaving, for real: a move and an audit that wait for each other."""

import threading

from nova import context as nova_context

from tests.functional.interleavings import tracker
from tests.functional import waiting

#: Seconds after which a move or an audit is stuck.
PATIENCE = 60


class Replay(object):
    """Runs a move, and an audit of one host in a thread of its own.

    Only one of the two runs at any time: the audit until its next read is not
    due yet, the move until its next step.

    :param cloud: the :class:`~tests.functional.cloud.CloudTestCase`
    :param steps: the :class:`~tests.functional.interleavings.stepping.Steps`
    :param host: the host that is audited, which is also its node
    :param reads: [(name of the function that reads, step at which it does)]
    """

    def __init__(self, cloud, steps, host, reads):
        self._cloud = cloud
        self._steps = steps
        self._host = host
        self._reads = reads
        self._changed = threading.Condition()
        self._step = -1
        self._made = []
        self._waits = False
        self._thread = None
        self._over = False
        #: what stopped the audit, or None
        self.error = None
        #: the tracker.Usage when the audit had ended
        self.after = None

    def run(self, uuid, act):
        """Run both to their end.

        :param uuid: the UUID of the instance that moves
        :param act: runs the move to its end, and tells whether it got there
        :returns: what ``act`` returned
        """
        self._steps.reader = self._read
        self._steps.begin(uuid, self._take_step)
        try:
            self._take_step(self._host)
            result = act()
            self._let_audit_end()
            return result
        finally:
            self._steps.end()
            self._steps.reader = None

    @property
    def reads(self):
        """The reads that the audit made, as they were asked for."""
        return tuple(self._made)

    # ---- the move

    def _take_step(self, host):
        if host != self._host:
            return
        with self._changed:
            self._step += 1
            self._changed.notify_all()
        if self._thread is None and self._is_due():
            self._thread = threading.Thread(target=self._audit)
            self._thread.daemon = True
            self._thread.start()
        if self._thread is not None:
            self._wait(lambda: self._over or (
                self._waits and not self._is_due()), 'the audit')

    def _let_audit_end(self):
        with self._changed:
            self._step = float('inf')
            self._changed.notify_all()
        self._wait(lambda: self._over or self._thread is None, 'the audit')

    # ---- the audit

    def _is_due(self):
        number = len(self._made)
        return number >= len(self._reads) or (
            self._reads[number][1] <= self._step)

    def _read(self, name, call):
        if not self._made and name != self._reads[0][0]:
            # the driver's, before the audit takes the lock
            return call()
        with self._changed:
            self._waits = True
            self._changed.notify_all()
        self._wait(self._is_due, 'step of read %d' % len(self._made))
        with self._changed:
            self._waits = False
            number = len(self._made)
            self._made.append((name, self._reads[number][1] if
                               number < len(self._reads) else self._step))
        return call()

    def _audit(self):
        me = threading.get_ident()
        self._steps.audits.add(me)
        try:
            # The manager's method waits where a release lets but one audit
            # of a host run at a time, and the move may have one, too.
            self._cloud.processes[self._host].manager.rt \
                .update_available_resource(
                    nova_context.get_admin_context(), self._host)
        except Exception as e:
            self.error = e
        finally:
            memory = tracker.take(
                self._cloud.processes[self._host].manager.rt)
            self.after = tracker.usage(memory, self._host, self._steps.uuid)
            self._steps.audits.discard(me)
            with self._changed:
                self._over = True
                self._changed.notify_all()

    def _wait(self, predicate, what):
        with self._changed:
            if not self._changed.wait_for(predicate, PATIENCE):
                raise waiting.WaitTimeout('not after %d s: %s' % (
                    PATIENCE, what))
