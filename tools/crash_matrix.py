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

"""The matrix of crash points, of a file of JSON lines: text and page.

A line is one cell: an operation, the side whose nova-compute was killed, the
point, what the world did meanwhile, and the violations, on one release, with
the guard or without it. Of lines about the same cell the last one counts.
"""

import collections
import html
import json

STOCK, GUARDED = False, True

#: What is left of a move that Nova alone is to see through.
LEFT = 'left'

STYLE = """
body { font: 14px sans-serif; margin: 2em; color: #222 }
table { border-collapse: collapse; margin-bottom: 1em }
th, td { border: 1px solid #fff; padding: 2px 6px; text-align: left;
         font-weight: normal }
td.cell { min-width: 3em; text-align: center }
.ok { background: #b7e1b0 } .bad { background: #e88 }
.none { background: #eee } .broken { background: #fc6 }
code { font-size: 12px }
"""


def _key(cell):
    return (cell['release'], cell['operation'], cell['side'], cell['point'],
            cell['world'])


def command(cell):
    """The line that reproduces a cell."""
    return ("crash-points --operation %s --side %s --step '%s' --world %s "
            '--guard %s --release %s' % (
                cell['operation'], cell['side'], cell['point'],
                cell['world'], 'on' if cell['guard'] else 'off',
                cell['release']))


def rules(cell):
    """The rules that broke in a cell: 'R1 R4', or '' for none."""
    return ' '.join(sorted({rule for rule, _ in cell['violations']}))


class Matrix(object):
    """Cells, stock beside guarded.

    :param cells: dicts, in the order in which they were run
    """

    def __init__(self, cells):
        # {key: {guard: cell}}
        self._cells = collections.OrderedDict()
        for cell in cells:
            self._cells.setdefault(_key(cell), {})[cell['guard']] = cell

    @classmethod
    def read(cls, path):
        """The matrix of a file."""
        try:
            with open(path) as stream:
                return cls([json.loads(line) for line in stream])
        except IOError:
            return cls([])

    def bad(self):
        """The guarded cells that break a rule, or broke the harness.

        What is left of a move that the guard does not drive counts where
        stock Nova leaves nothing.
        """
        return [pair[GUARDED] for pair in self._cells.values()
                if GUARDED in pair and (
                    pair[GUARDED]['broken'] or
                    pair[GUARDED]['reached'] and self._worse(pair))]

    @staticmethod
    def _worse(pair):
        broken = set(rules(pair[GUARDED]).split())
        if LEFT in broken and STOCK in pair and (
                LEFT in rules(pair[STOCK]).split()):
            broken.discard(LEFT)
        return broken

    def rows(self):
        """The summary: one row for each release, operation and side.

        :returns: [(release, operation, side, points, cells stock, violating,
            cells guarded, violating, {rule: guarded cells})]
        """
        found = collections.OrderedDict()
        for (release, operation, side, _, _), pair in self._cells.items():
            found.setdefault((release, operation, side), []).append(pair)
        for key, pairs in found.items():
            points = {cell['point'] for pair in pairs
                      for cell in pair.values()}
            row = list(key) + [len(points)]
            for guard in (STOCK, GUARDED):
                cells = [pair[guard] for pair in pairs if guard in pair and
                         pair[guard]['reached']]
                row += [len(cells), sum(bool(cell['violations'])
                                        for cell in cells)]
            broken = collections.Counter(
                rule for pair in pairs if STOCK in pair
                for rule in set(rules(pair[STOCK]).split()))
            yield row + [' '.join('%s:%d' % item
                                  for item in sorted(broken.items()))]

    HEAD = ('release', 'operation', 'side', 'points', 'stock', 'violate',
            'guarded', 'violate', 'stock breaks')

    def text(self):
        """The summary as a simple table, and each bad cell's line."""
        body = [[str(value) for value in row] for row in self.rows()]
        widths = [max(len(row[column]) for row in [list(self.HEAD)] + body)
                  for column in range(len(self.HEAD))]
        rule = '  '.join('=' * width for width in widths)

        def line(row):
            return '  '.join(value.ljust(width) for value, width in
                             zip(row, widths)).rstrip()
        lines = [rule, line(self.HEAD), rule] + [
            line(row) for row in body] + [rule]
        for cell in self.bad():
            lines += ['', command(cell)] + [
                '  %s: %s' % tuple(violation)
                for violation in cell['violations']]
            if cell['broken']:
                lines.append('  the harness: %s' %
                             cell['broken'].strip().splitlines()[-1][:300])
        return '\n'.join(lines)

    # ---- the page

    def html(self):
        """The heat map: steps down, worlds and both Novas across."""
        parts = ['<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
                 '<title>Crash points</title><style>%s</style></head><body>'
                 '<h1>Crash points</h1>' % STYLE]
        groups = collections.OrderedDict()
        for (release, operation, side, point, world), pair in (
                self._cells.items()):
            groups.setdefault((release, operation, side), {}).setdefault(
                point, {})[world] = pair
        for (release, operation, side), points in groups.items():
            parts.append('<h2>%s, nova %s, killed on the %s</h2>' % tuple(
                map(html.escape, (operation, release, side))))
            parts.append(self._table(points))
        parts.append('<h2>Stories</h2><ul>')
        for pair in self._cells.values():
            for cell in pair.values():
                if cell['violations'] or cell['broken']:
                    parts.append('<li><code>%s</code><br>%s</li>' % (
                        html.escape(command(cell)),
                        html.escape(self._story(cell))))
        parts.append('</ul></body></html>')
        return '\n'.join(parts)

    def _table(self, points):
        worlds = list(collections.OrderedDict.fromkeys(
            world for found in points.values() for world in found))
        head = ''.join('<th>%s, %s</th>' % (world, name) for world in worlds
                       for name in ('stock', 'guarded'))
        rows = ''.join('<tr><th><code>%s</code></th>%s</tr>' % (
            html.escape(point), ''.join(
                self._cell(found.get(world, {}).get(guard))
                for world in worlds for guard in (STOCK, GUARDED)))
            for point, found in points.items())
        return '<table><tr><th>step</th>%s</tr>%s</table>' % (head, rows)

    def _cell(self, cell):
        if cell is None or not cell['reached'] and not cell['broken']:
            return '<td class="cell none"></td>'
        kind = ('broken' if cell['broken'] else
                'bad' if cell['violations'] else 'ok')
        return '<td class="cell %s" title="%s">%s</td>' % (
            kind, html.escape(self._story(cell), quote=True),
            html.escape(rules(cell)))

    @staticmethod
    def _story(cell):
        return '; '.join(
            ['%s: %s' % tuple(found) for found in cell['violations']] +
            [cell['story']] + ([cell['broken']] if cell['broken'] else []))
