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

"""Fits text into the columns of a table."""

import re

# An arrow or a number keeps what belongs to it: '-> host-b', '40 %'
_KEEP = re.compile('(?<=->) |(?<=\u2192) | (?=%)')
_GLUE = '\u00a0'
# Where a word that is too long may be cut: after one of these
_CUT = re.compile(r'(?<=[/:_=.,\-])')


def _pieces(word, width):
    """Cut a word that is wider than the column."""
    if len(word) <= width:
        return [word]
    lines = ['']
    for part in _CUT.split(word):
        if len(lines[-1]) + len(part) <= width:
            lines[-1] += part
            continue
        if lines[-1]:
            lines.append('')
        while len(part) > width:
            lines[-1] = part[:width]
            part = part[width:]
            lines.append('')
        lines[-1] = part
    return [line for line in lines if line]


def wrap(text, width):
    """Return the lines of one statement, none wider than width."""
    lines = []
    line = ''
    for word in filter(None, _KEEP.sub(_GLUE, text).split(' ')):
        if len(word) > width:
            # what was glued is cut first, where it was glued
            word_parts = word.split(_GLUE)
        else:
            word_parts = [word]
        for part in word_parts:
            for piece in _pieces(part, width):
                if line and len(line) + 1 + len(piece) <= width:
                    line += ' ' + piece
                else:
                    if line:
                        lines.append(line)
                    line = piece
    if line:
        lines.append(line)
    return [item.replace(_GLUE, ' ').rstrip() for item in lines]


def cell(parts, width):
    """Return the lines of a cell with several statements."""
    return [line for part in parts for line in wrap(part, width)]


def natural(rows):
    """Return the width at which each column wraps nothing."""
    return [max([1] + [len(part) for parts in column for part in parts])
            for column in zip(*rows)]


class _Heights(object):
    """How many lines each cell takes at each width; asked often, kept."""

    def __init__(self, rows):
        self._columns = list(zip(*rows))
        self._known = {}

    def _column(self, index, width):
        key = (index, width)
        if key not in self._known:
            self._known[key] = [len(cell(parts, width))
                                for parts in self._columns[index]]
        return self._known[key]

    def cost(self, widths):
        """Return what a reader pays: above all the lines of the table."""
        columns = [self._column(index, width)
                   for index, width in enumerate(widths)]
        return (10 * sum(max(counts) for counts in zip(*columns)) +
                sum(sum(counts) for counts in columns))


def fit(rows, room, least=8):
    """Share room among the columns so that the table is as short as can be.

    :param rows: list of rows; a row is a list of cells; a cell is a list of
        statements, each of which begins a line
    :param room: characters for all columns together, without what stands
        between them
    :param least: no column is narrower than this, unless its text or the
        room is
    :returns: list of widths; the sum is room, or less when nothing wraps
    """
    wanted = natural(rows)
    if sum(wanted) <= room:
        return wanted
    least = max(1, min(least, room // len(wanted)))
    widths = [min(least, want) for want in wanted]
    heights = _Heights(rows)
    while sum(widths) < room:
        cost = heights.cost(widths)
        best = None
        for index, want in enumerate(wanted):
            lacks = want - widths[index]
            # one more character often changes nothing, some more do
            for step in range(1, min(12, lacks, room - sum(widths)) + 1):
                trial = list(widths)
                trial[index] += step
                gain = (cost - heights.cost(trial)) / float(step)
                if best is None or (gain, lacks) > best[:2]:
                    best = (gain, lacks, index, step)
        widths[best[2]] += best[3]
    return widths
