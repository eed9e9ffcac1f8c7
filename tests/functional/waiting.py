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

"""Waiting with a bound, in green threads and in native threads alike.

Code under test may call libvirt from a native thread even when the process
is monkey patched by eventlet (a native call would block every green thread).
A patched ``threading.Event`` belongs to the hub of one native thread and must
not be shared by two, so what both kinds of thread wait for is polled.
"""

import time

#: Seconds between two looks at a condition. A look at the API costs 0.05.
INTERVAL = 0.2

#: Seconds to wait for what takes one or two on an idle machine.
TIMEOUT = 60


class WaitTimeout(AssertionError):
    """What was waited for did not happen in time."""


def wait_until(predicate, what, timeout=TIMEOUT, interval=INTERVAL):
    """Wait until a predicate is true.

    :param predicate: called without arguments, several times
    :param what: what is waited for, for the error; a string, or a callable
        that makes one when the time is over
    :param timeout: seconds
    :param interval: seconds between two calls
    :returns: the first true value of the predicate
    :raises WaitTimeout: when the time is over
    """
    end = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > end:
            if callable(what):
                what = what()
            raise WaitTimeout('not after %s s: %s' % (timeout, what))
        time.sleep(interval)
