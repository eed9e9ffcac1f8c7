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

"""Every interleaving of every move; the long run, which no suite finds.

``NMG_GUARD`` says whether with the guard (``on``, the default) or without it
(``off``). ``NMG_INTERLEAVINGS`` names a file to which each result is appended
as one line of JSON; ``NMG_REPLAYS`` says how many outcomes of each move are
run for real, which takes most of the time. ``tools/interleavings`` runs this
on several releases of Nova, and prints the table.
"""

import json
import os

from tests.functional.interleavings import moves
from tests.functional.interleavings import testcase
from tests.functional.interleavings import two_cells
from tests.functional import releases


class _Explored(object):
    """Guarded, nothing is violated; on stock, what is known to be."""

    GUARD = os.environ.get('NMG_GUARD', 'on') == 'on'
    REPLAYS = int(os.environ.get('NMG_REPLAYS') or -1)

    def _test(self, kind):
        results = self.explore(
            kind, None if self.REPLAYS < 0 else self.REPLAYS)
        for result in results:
            self._write(result)
        seen = '\n'.join(str(result) for result in results)
        self.assertEqual([], [
            difference for result in results
            for difference in result.differences if self.guard], seen)
        violating = sum(result.violating for result in results)
        if self.guard:
            self.assertEqual(0, violating, seen)
        else:
            # a violation of another move is a hole that nobody knew of
            self.assertEqual(kind.violates_on_stock(), violating > 0, seen)

    def _write(self, result):
        path = os.environ.get('NMG_INTERLEAVINGS')
        if path:
            with open(path, 'a') as stream:
                stream.write(json.dumps(dict(
                    vars(result), release=releases.RELEASE,
                    guard=self.guard)) + '\n')


class EveryInterleaving(_Explored, testcase.InterleavingsTestCase):
    """Of the moves in one cell."""


class EveryInterleavingOfTwoCells(_Explored, two_cells.TwoCellsTestCase):
    """Of the moves from one cell to another, on copies."""

    REPLAYS = 0


def _add_tests(cls, kinds):
    for kind in kinds:
        def test(self, kind=kind):
            self._test(kind)
        test.__name__ = 'test_' + kind.NAME.replace(',', '').replace(
            ' ', '_').replace('-', '_')
        test.__doc__ = kind.NAME
        setattr(cls, test.__name__, test)


_add_tests(EveryInterleaving, moves.MOVES)
_add_tests(EveryInterleavingOfTwoCells, moves.CROSS_CELL_MOVES)
