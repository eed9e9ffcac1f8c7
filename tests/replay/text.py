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

"""Timelines as text, in the manner of a bug report.

One column for the time and what happens, one for what Nova says, one for
each host; stock Nova first, guarded Nova after it (or beside it where the
terminal is wide enough), and under both how each ended.
"""

from tests.replay import catalog
from tests.replay import columns
from tests.replay import judge
from tests.replay import table

#: Narrower than this there is no room for columns: one statement a line.
NARROW = 64
#: From this on, stock and guarded stand side by side.
WIDE = 190
_GAP = '   '
_HAPPENS = 'time, what happens'


def _signs(text, style):
    return text.replace('->', style.arrow)


def _cell(statements, look, style):
    return [table.Part(_signs(text, style), look) for text in statements]


def _event_cell(row, style):
    # two blanks, of which one is no place to wrap
    first = '%.1f s\u00a0 %s' % (row.clock, row.event.actor)
    # what happens is a sentence: a semicolon in it ends no statement
    return [table.Part(first, ('yellow',)),
            table.Part(_signs(row.event.what, style))]


def _state_cell(row, column, style):
    """Return what a cell says, or the sign for 'as it was'."""
    if column not in row.fresh:
        return [table.Part(style.same, ('dim',))]
    fresh = row.fresh[column]
    parts = _cell(row.gone.get(column, ()), ('bold',), style)
    parts.extend(table.Part(_signs(text, style),
                            ('bold',) if text in fresh else ('dim',))
                 for text in row.cells[column])
    return parts or [table.Part('nothing', ('dim',))]


def _rows(run, style):
    """Return the rows of a run's table, the heading first."""
    bold = ('bold',)
    rows = [[_cell([name], bold, style)
             for name in [_HAPPENS] + run.columns]]
    for row in run.rows():
        rows.append([_event_cell(row, style)] +
                    [_state_cell(row, column, style)
                     for column in run.columns])
    return rows


def _notes(run, style):
    """Return {number of the table's row: what is wrong after it}."""
    notes = {}
    for number, row in enumerate(run.rows(), 1):
        wrong = judge.wrong(row)
        if wrong:
            notes[number] = [table.Part('%s %s' % (style.alert, text),
                                        ('red', 'bold')) for text in wrong]
    return notes


def _as_list(run, width, style):
    """The same for a terminal too narrow for columns."""
    out = []
    notes = _notes(run, style)
    for number, row in enumerate(run.rows(), 1):
        for part in _event_cell(row, style):
            out.extend(table.painted(part, width, style))
        for column in run.columns:
            if column not in row.fresh:
                continue
            text = '%s: %s' % (column, '; '.join(
                row.gone.get(column, []) + row.cells[column]) or 'nothing')
            part = table.Part(_signs(text, style), ('bold',))
            out.extend('  ' + line for line in
                       table.painted(part, max(8, width - 2), style))
        for part in notes.get(number, ()):
            out.extend(table.painted(part, width, style))
        out.append('')
    return out[:-1]


def verdict(run, width, style):
    """Return the lines that say how a run ended."""
    frame = ' %s ' if style.colour else '[%s]'
    lead = len(frame % run.verdict) + 1
    painted = [style.paint(frame % line, 'good' if run.safe else 'bad')
               for line in columns.wrap(run.verdict, width - 2)]
    meaning = catalog.meaning(run.verdict)
    if lead > width // 2:
        return painted + columns.wrap(meaning, width)
    lines = columns.wrap(meaning, width - lead) or ['']
    return ([(painted[0] + ' ' + lines[0]).rstrip()] +
            [' ' * lead + line for line in lines[1:]])


def _blocks(runs, width, style):
    """Return the lines of each run, with columns that match."""
    tables = [_rows(run, style) for run in runs]
    widths = table.shared_widths(tables, width)
    blocks = []
    for run, rows in zip(runs, tables):
        if width < NARROW:
            body = _as_list(run, width, style)
        else:
            body = table.lines(rows, widths[len(rows[0])], style,
                               _notes(run, style))
        head = columns.wrap(run.title.upper(), width)
        blocks.append([style.paint(line, 'bold') for line in head] + [''] +
                      body + [''] + verdict(run, width, style))
    return blocks


def _ends(stock, guarded, width, style):
    """How the two ended, line by line: the difference at a glance."""
    bold = ('bold',)
    last = [run.rows()[-1].cells for run in (stock, guarded)]
    rows = [[_cell([text], bold, style)
             for text in ('in the end', stock.title, guarded.title)]]
    names = stock.columns + [name for name in guarded.columns
                             if name not in stock.columns]
    for name in names:
        cells = [cells_of.get(name) or ['nothing'] for cells_of in last]
        look = bold if cells[0] != cells[1] else ('dim',)
        rows.append([_cell([name], (), style)] +
                    [_cell(cell, look, style) for cell in cells])
    rows.append([_cell(['verdict'], (), style)] +
                [_verdict_cell(run) for run in (stock, guarded)])
    widths = table.shared_widths([rows], width)
    return table.lines(rows, widths[len(rows[0])], style)


def _verdict_cell(run):
    tone = 'green' if run.safe else 'red'
    return [table.Part(run.verdict, (tone, 'bold'))]


def heading(name, width, style):
    """Return the lines that introduce a scenario."""
    info = catalog.known(name)
    out = [style.paint(style.heavy * width, 'dim')]
    title = info.name
    if info.title != info.name:
        title += ': ' + info.title
    out.extend(style.paint(line, 'bold')
               for line in columns.wrap(title, width))
    out.extend(columns.wrap(info.story, min(width, 100)))
    out.extend(style.paint(line, 'dim')
               for line in columns.wrap(info.report, width))
    return out + ['']


def scenario(runs, width, style):
    """Return the runs of one scenario as lines, stock before guarded.

    :param runs: one Timeline, or two
    :param width: no line is wider than this
    :param style: Style of the terminal
    """
    runs = sorted(runs, key=lambda run: run.guard == 'on')
    out = heading(runs[0].scenario, width, style)
    if len(runs) == 2 and width >= WIDE:
        half = (width - 2 * len(_GAP) - 1) // 2
        blocks = _blocks(runs, half, style)
        out.extend(table.beside(blocks[0], blocks[1], _GAP, style))
    else:
        for number, block in enumerate(_blocks(runs, width, style)):
            out.extend([''] * bool(number) + block)
    if len(runs) == 2:
        out.append('')
        out.extend(_ends(runs[0], runs[1], width, style))
    return out


def legend(style):
    """Return what the signs of the tables mean."""
    return ('%s  as in the line above    %s  where Nova and the hosts part '
            'ways' % (style.same, style.alert))


def summary(runs, width, style):
    """Return one line for each run: scenario, stock or guarded, verdict."""
    rows = [[_cell([text], ('bold',), style)
             for text in ('scenario', 'nova', 'verdict')]]
    for run in runs:
        rows.append([_cell([run.scenario], (), style),
                     _cell([run.title], (), style), _verdict_cell(run)])
    widths = table.shared_widths([rows], width)
    return table.lines(rows, widths[3], style, rules=False)
