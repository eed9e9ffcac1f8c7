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

"""Plays cells of the matrix, in one process, and writes them down.

``python -m tests.functional.crash_points.play``; ``tools/crash-points`` runs
it with the Python of a release's virtualenv.
"""

import argparse
import json
import sys
import time
import traceback

import testtools

from tests.functional.crash_points import block_operations
from tests.functional.crash_points import move_operations
from tests.functional.crash_points import operations
from tests.functional.crash_points import points
from tests.functional.crash_points import testcase
from tests.functional import releases

#: {name: class} of every operation.
OPERATIONS = dict(operations.OPERATIONS, **dict(
    block_operations.OPERATIONS, **move_operations.OPERATIONS))

#: Cells that share one set-up at the most: killed processes pile up in it.
SHARED = 12


class Play(testcase.CrashPointTestCase):
    """Plays what it is given, until something is broken."""

    def __init__(self, operation, guard, work):
        super(Play, self).__init__('play')
        self.OPERATION = OPERATIONS[operation]
        self.GUARD = guard
        self._work = work

    def play(self):
        self._work(self)


def _run(operation, guard, work):
    """Run something in a fresh test.

    :param operation: its name
    :param work: called with the test
    """
    result = testtools.TestResult()
    Play(operation, guard, work).run(result)
    for _, details in result.errors + result.failures:
        raise RuntimeError(details)


def record(operation, guard):
    """{side: the names of the effects of an operation on it}."""
    found = {}
    _run(operation, guard, lambda test: found.update(test.record()))
    return found


def cells(sides, recorded):
    """Every cell of an operation, without its world."""
    for side in sides:
        for name in recorded[side]:
            for when in points.SIDES:
                yield side, '%s:%s' % (name, when)


def double_cells(operation):
    """Every cell in which the settlement is killed, too.

    :returns: [(side, point, world)]
    """
    found = []

    def work(test):
        for side, point, world in (
                OPERATIONS[operation].SETTLED_AFTER):
            test.run_cell(testcase.Cell(
                operation, side, point + testcase.THEN, world))
            found.extend(
                (side, '%s%s%s:%s' % (point, testcase.THEN, name, when),
                 world) for name in test.settlement for when in points.SIDES)
    _run(operation, True, work)
    return found


def play(operation, guard, wanted, done):
    """Play cells, a few in each test.

    :param wanted: a list of :class:`~.testcase.Cell`
    :param done: called with each one when it is done, with its seconds and
        with what broke the harness, or None
    """
    wanted = list(wanted)

    def work(test):
        for _ in range(SHARED):
            if not wanted:
                return
            cell = wanted.pop(0)
            begun = time.monotonic()
            try:
                test.run_cell(cell)
            except Exception:
                done(cell, time.monotonic() - begun, traceback.format_exc())
                return
            done(cell, time.monotonic() - begun, None)
            if cell.violations:
                return
    while wanted:
        _run(operation, guard, work)


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--operation', required=True,
                        choices=sorted(OPERATIONS))
    parser.add_argument('--side', action='append')
    parser.add_argument('--step', action='append')
    parser.add_argument('--world', action='append',
                        choices=operations.WORLDS)
    parser.add_argument('--double', action='store_true')
    parser.add_argument('--every', type=int, default=1)
    parser.add_argument('--guard', choices=('on', 'off'), default='on')
    parser.add_argument('--results', help='a file of JSON lines')
    parser.add_argument('--list', action='store_true')
    return parser.parse_args(argv)


def main(argv):
    args = parse(argv)
    sides = args.side or sorted(
        OPERATIONS[args.operation].SIDES)
    guard = args.guard == 'on'
    if args.double:
        found = double_cells(args.operation)
    elif args.step:
        found = [(side, step, None) for side in sides for step in args.step]
    else:
        found = [(side, point, None) for side, point in cells(
            sides, record(args.operation, guard))]
    found = found[::args.every]
    if args.list:
        for side, point, _ in found:
            print(side, point, file=sys.__stdout__)
        return 0
    known = {}
    if args.results:
        try:
            with open(args.results) as stream:
                known = {key(entry): entry for entry in map(
                    json.loads, stream)}
        except IOError:
            pass
    violated = []

    def done(cell, seconds, broken):
        entry = dict(
            vars(cell), guard=guard, release=releases.RELEASE,
            seconds=round(seconds, 1), broken=broken,
            violations=[list(found) for found in cell.violations])
        known[key(entry)] = entry
        if cell.violations or broken:
            violated.append(cell)
        print('%s%s' % (cell, ' BROKEN %s' % broken if broken else ''),
              file=sys.__stdout__, flush=True)
        if args.results:
            with open(args.results, 'a') as stream:
                stream.write(json.dumps(entry) + '\n')
    for world in args.world or operations.WORLDS:
        wanted = []
        for side, point, only in found:
            if only not in (None, world):
                continue
            cell = testcase.Cell(args.operation, side, point, world)
            others = [entry for entry in known.values()
                      if (entry['side'], entry['point'], entry['guard'],
                          entry['release'], entry['operation']) == (
                              side, point, guard, releases.RELEASE,
                              args.operation) and not entry['broken']]
            if any(entry['world'] == world or not entry['had_job']
                   for entry in others):
                continue
            wanted.append(cell)
        play(args.operation, guard, wanted, done)
    return 1 if violated else 0


def key(entry):
    return tuple(entry[name] for name in (
        'operation', 'side', 'point', 'world', 'guard', 'release'))


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
