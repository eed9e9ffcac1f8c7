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

"""Tables of wrapped and painted cells, as lines for a terminal."""

import collections

from tests.replay import columns

#: One statement of a cell; it begins a line. looks: for Style.paint.
Part = collections.namedtuple('Part', ['text', 'looks'])
Part.__new__.__defaults__ = ((),)

_BETWEEN = 3


def painted(part, width, style):
    """Return the lines of one Part."""
    return [style.paint(line, *part.looks)
            for line in columns.wrap(part.text, width)]


def shared_widths(tables, width):
    """Return {number of columns: widths} for tables shown together.

    Tables with as many columns get the same widths, so that they match.
    A table is a list of rows, a row a list of cells, a cell a list of Part.
    """
    plain = collections.defaultdict(list)
    for rows in tables:
        plain[len(rows[0])].extend(
            [[part.text for part in cell] for cell in row] for row in rows)
    return {count: columns.fit(rows, max(count,
                                         width - _BETWEEN * (count - 1)))
            for count, rows in plain.items()}


def _row(row, widths, style):
    """Yield the lines of one row."""
    cells = []
    for cell, width in zip(row, widths):
        cells.append([(line, part.looks) for part in cell
                      for line in columns.wrap(part.text, width)])
    bar = ' %s ' % style.paint(style.bar, 'dim')
    for number in range(max(len(cell) for cell in cells)):
        out = []
        for cell, width in zip(cells, widths):
            text, looks = cell[number] if number < len(cell) else ('', ())
            out.append(style.paint(text, *looks) + ' ' * (width - len(text)))
        yield bar.join(out).rstrip()


def lines(rows, widths, style, notes=None, rules=True):
    """Return a table as lines.

    :param notes: {number of a row: list of Part} that stand under that row,
        across all columns
    :param rules: whether a rule stands between all rows, or only under the
        first, which is the heading
    """
    joint = style.rule + style.cross + style.rule
    rule = style.paint(joint.join(style.rule * width for width in widths),
                       'dim')
    across = sum(widths) + _BETWEEN * (len(widths) - 1)
    out = []
    for number, row in enumerate(rows):
        if number == 1 or (number and rules):
            out.append(rule)
        out.extend(_row(row, widths, style))
        for part in (notes or {}).get(number, ()):
            out.extend(painted(part, across, style))
    return out


def visible(line):
    """Return the length of a line without its colour codes."""
    length = 0
    inside = False
    for sign in line:
        if sign == '\x1b':
            inside = True
        elif not inside:
            length += 1
        elif sign == 'm':
            inside = False
    return length


def beside(left, right, gap, style):
    """Return two blocks of lines side by side."""
    edge = max(visible(line) for line in left)
    bar = gap + style.paint(style.double, 'dim') + gap
    out = []
    for number in range(max(len(left), len(right))):
        here = left[number] if number < len(left) else ''
        there = right[number] if number < len(right) else ''
        out.append((here + ' ' * (edge - visible(here)) + bar +
                    there).rstrip())
    return out
