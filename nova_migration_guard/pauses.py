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

"""How long the settler waits between its attempts.

Where all hosts of a region restart at once, their settlers would all ask the
conductors and each other in the same second, and again after each interval.
So no two of them wait equally long.
"""

import random

# How much of a pause is left to chance. No pause is longer than its option
# says.
JITTER = 0.5


class Pauses(object):
    """The pauses of one nova-compute's settler.

    :param interval: ``[migration_guard] settle_interval``, in seconds
    :param longest: ``settle_interval_max``, in seconds
    """

    def __init__(self, interval, longest):
        self._interval = interval
        self._longest = longest
        self._random = random.SystemRandom()

    def _up_to(self, seconds):
        return seconds * self._random.uniform(1 - JITTER, 1)

    def between_rounds(self):
        """Seconds until the settler looks again whether something is due."""
        return self._up_to(self._interval)

    def after(self, attempts):
        """Seconds until the next attempt at one instance.

        What is left to chance apart, they double with each attempt.

        :param attempts: how many there were, from 1
        """
        doublings = min(attempts - 1, 32)
        return self._up_to(min(self._interval * 2 ** doublings,
                               self._longest))
