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

import threading
import time
import typing


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
        :param timeout: seconds to wait for one of them
        :param budget: seconds to wait for all of them together
        :returns: ({key: result}, {key: exception}); a key whose call is late
            is in the second with a :class:`CallTimeout`, and its call goes on
        """
        deadline = time.monotonic() + budget
        calls, results = {}, {}
        errors: typing.Dict[typing.Hashable, Exception] = {}
        for key in keys:
            try:
                calls[key] = self._start(
                    key, min(timeout, deadline - time.monotonic()),
                    lambda key=key: function(key))
            except CallTimeout as e:
                errors[key] = e
        # all of them run by now: one more timeout is enough for each
        deadline = min(deadline, time.monotonic() + timeout)
        for key, call in calls.items():
            if not call.wait(deadline - time.monotonic()):
                errors[key] = CallTimeout('no answer in time')
                continue
            try:
                results[key] = call.outcome()
            except Exception as e:
                errors[key] = e
        return results, errors
