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

"""Which cells of the matrix a suite runs: others with each commit."""

import os
import pathlib
import subprocess

from tests.functional.crash_points import play

TOP = pathlib.Path(__file__).resolve().parents[3]


def rotation():
    """A number that changes with each commit; ``NMG_ROTATION`` sets it."""
    if os.environ.get('NMG_ROTATION'):
        return int(os.environ['NMG_ROTATION'])
    try:
        count = subprocess.run(
            ['git', '-C', str(TOP), 'rev-list', '--count', 'HEAD'],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        return int(count.stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        # no clone: a source distribution
        return 0


def some(found, number):
    """Some of many cells; over enough commits it is each one's turn.

    :param found: a list
    :param number: how many
    """
    stride = max(1, -(-len(found) // number))
    return found[rotation() % stride::stride]


def cells(recorded, side, worlds, number):
    """Some cells of one side, the worlds in turn.

    :param recorded: as from :meth:`~.testcase.CrashPointTestCase.record`
    :returns: [(point, world)]
    """
    turn = rotation()
    return [(point, worlds[(turn + index) % len(worlds)])
            for index, (_, point) in enumerate(some(
                list(play.cells([side], recorded)), number))]
