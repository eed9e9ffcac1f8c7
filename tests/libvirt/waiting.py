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

"""Waiting that has an end."""

import time

INTERVAL = 0.02


def until(condition, timeout, what):
    """Wait until a condition holds.

    :param condition: a callable; what it returns is true when it holds
    :param timeout: seconds
    :param what: the condition in words
    :returns: what the condition returned
    :raises AssertionError: when it does not hold by then
    """
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError('Not within %s s: %s' % (timeout, what))
        time.sleep(INTERVAL)
