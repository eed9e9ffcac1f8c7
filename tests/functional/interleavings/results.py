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

"""What came of it, as a table."""


class Result(object):
    """All interleavings of one move with an audit of one host.

    :ivar steps: how many steps the move has for that host
    :ivar interleavings: how many were run
    :ivar distinct: how many outcomes they have that go on differently
    :ivar replayed: how many of these were run for real as well
    :ivar violating: how many of them violate something
    :ivar violations: {what: in how many}
    :ivar differences: where a run for real was not as it was foreseen
    """

    def __init__(self, move, host, guest, steps, interleavings, distinct,
                 replayed, violations, differences):
        self.move = move
        self.host = host
        self.guest = guest
        self.steps = steps
        self.interleavings = interleavings
        self.distinct = distinct
        self.replayed = replayed
        self.violating = 0
        self.violations = violations
        self.differences = differences

    def count(self, violations):
        """One more interleaving, which violates these."""
        if violations:
            self.violating += 1

    def __str__(self):
        return '%s, audit of %s: %d interleavings, %d violate: %s; %s' % (
            self.move, self.host, self.interleavings, self.violating,
            self.violations, self.differences)
