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

"""Calls that may block without limit, waited for with one.

libvirt has no client-side timeout, and a call to a domain whose monitor hangs
can block for as long as its QEMU hangs. So each call runs in a thread of its
own and the caller waits for it no longer than it wants to. A call that hangs
cannot be ended; it keeps its thread, and the number of threads is bounded.

Under eventlet ``threading`` is patched, and these are green threads whose
libvirt calls Nova's connection hands to a native thread.
"""

import collections
import threading
import time


class CallTimeout(Exception):
    """The call did not return in time, or could not be made in time."""


class _Call(object):
    """One call in its own thread."""

    def __init__(self, function, done):
        self._function = function
        self._done = done
        self._ended = threading.Event()
        self._result = None
        self._error = None
        thread = threading.Thread(target=self._run, name='migration-guard')
        thread.daemon = True
        thread.start()

    def _run(self):
        try:
            self._result = self._function()
        except Exception as e:
            self._error = e
        finally:
            self._ended.set()
            self._done()

    def wait(self, seconds):
        return self._ended.wait(max(0, seconds))

    def outcome(self):
        if self._error is not None:
            raise self._error
        return self._result


class _Round(object):
    """Calls that are made side by side, by as many threads as there are.

    Iterated over by each of the threads, it gives every key to one of them.
    """

    def __init__(self, keys, function):
        self._function = function
        self._waiting = collections.deque(keys)
        self._begun = {}
        self._results = {}
        self._errors = {}
        self._moved = threading.Condition()
        self._last = time.monotonic()

    def __iter__(self):
        return self

    def __next__(self):
        with self._moved:
            if not self._waiting:
                raise StopIteration
            key = self._waiting.popleft()
            self._begun[key] = self._last = time.monotonic()
            return key

    def make(self, key):
        """Make one call, and note what came of it."""
        try:
            result = self._function(key)
        except Exception as e:
            self.ended(key, error=e)
        else:
            self.ended(key, result)

    def ended(self, key, result=None, error=None):
        with self._moved:
            if self._begun.pop(key, None) is None:
                return
            if error is None:
                self._results[key] = result
            else:
                self._errors[key] = error
            if not self._begun:
                self._moved.notify_all()

    def needs_worker(self):
        """Whether a call waits for a thread."""
        return bool(self._waiting)

    def patience(self, timeout):
        """Seconds to wait for another thread, from now on.

        While one call is made after the other there is no need for it.
        """
        return self._last + timeout - time.monotonic()

    def end(self, timeout, deadline):
        """Wait for the calls that were begun.

        :param timeout: seconds to wait for one of them
        :param deadline: until when to wait for all of them
        :returns: what :meth:`Workers.call_each` returns
        """
        with self._moved:
            while self._begun or self._waiting:
                now = time.monotonic()
                wait = min(deadline, max(
                    list(self._begun.values()) or [self._last]) +
                    timeout) - now
                if wait <= 0:
                    break
                self._moved.wait(wait)
            for key in self._waiting:
                self._errors[key] = CallTimeout(
                    'every worker waits for a call that hangs')
            self._waiting.clear()
            for key in self._begun:
                self._errors[key] = CallTimeout('no answer in time')
            self._begun.clear()
            return self._results, self._errors


class Workers(object):
    """A bounded number of threads for calls that may hang.

    :param limit: how many calls may be under way at once, hung ones included
    """

    def __init__(self, limit):
        self._slots = threading.Semaphore(limit)
        self._lock = threading.Lock()
        self._running = {}

    def _start(self, key, seconds, function):
        with self._lock:
            if key in self._running:
                raise CallTimeout('an earlier call has not returned')
        if not self._slots.acquire(timeout=max(0, seconds)):
            raise CallTimeout('every worker waits for a call that hangs')

        def done():
            with self._lock:
                self._running.pop(key, None)
            self._slots.release()

        with self._lock:
            self._running[key] = time.monotonic()
        return _Call(function, done)

    def call(self, key, timeout, function, *args):
        """Run ``function(*args)`` in a worker.

        :param key: what the call is about (a domain's UUID). While a call
            about it runs, no second one is made: it would hang as well.
        :param timeout: seconds to wait, for a free worker and for the result
        :returns: what the function returns
        :raises CallTimeout: when there is no result by then
        :raises Exception: what the function raises
        """
        deadline = time.monotonic() + timeout
        call = self._start(key, timeout, lambda: function(*args))
        if not call.wait(deadline - time.monotonic()):
            raise CallTimeout('no answer within %s s' % timeout)
        return call.outcome()

    def call_each(self, keys, timeout, budget, function):
        """Run ``function(key)`` for every key, side by side.

        :param keys: what the calls are about, each once
        :param timeout: seconds to wait for one of them, and for a worker
            that is free
        :param budget: seconds to wait for all of them together
        :returns: ({key: result}, {key: exception}); a key whose call is late
            is in the second with a :class:`CallTimeout`, and its call goes on
        """
        round_ = _Round(keys, function)
        deadline = time.monotonic() + budget
        while round_.needs_worker():
            wait = min(round_.patience(timeout),
                       deadline - time.monotonic())
            if not self._slots.acquire(timeout=max(0, wait)):
                if (time.monotonic() >= deadline or
                        round_.patience(timeout) <= 0):
                    break
                continue
            thread = threading.Thread(target=self._work, args=(round_,),
                                      name='migration-guard')
            thread.daemon = True
            thread.start()
        return round_.end(timeout, deadline)

    def _work(self, round_):
        """Make one call after the other, in one thread."""
        try:
            for key in round_:
                with self._lock:
                    if key in self._running:
                        round_.ended(key, error=CallTimeout(
                            'an earlier call has not returned'))
                        continue
                    self._running[key] = time.monotonic()
                try:
                    round_.make(key)
                finally:
                    with self._lock:
                        self._running.pop(key, None)
        finally:
            self._slots.release()
