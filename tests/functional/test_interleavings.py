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

"""The short form of the explorer of interleavings.

Two moves on copies, one of them on stock Nova as well. All of them, and those
that are run for real: ``tox -e interleavings``.
"""

from tests.functional.interleavings import judging
from tests.functional.interleavings import moves
from tests.functional.interleavings import testcase
from tests.functional import properties


class SomeInterleavings(testcase.InterleavingsTestCase):

    @properties.guarded
    def test_nothing_is_free_that_is_held(self):
        for kind in (moves.LiveMigrationPinned, moves.Revert):
            for result in self.explore(kind, replays=0):
                self.assertEqual({}, result.violations, str(result))
                self.assertGreater(result.interleavings, 3, str(result))

    def test_stock_sets_free_what_is_held(self):
        """The explorer finds on stock Nova what is known to be there."""
        found = set()
        for result in self.explore(moves.LiveMigrationPinned, replays=0):
            found.update(result.violations)
        self.assertEqual({judging.FREED_DEVICE, judging.FREED_CPU,
                          judging.NOT_COUNTED}, found)
