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

"""Draws a run as swim lanes: time goes down, one lane for Nova and a host.

The bars of a lane are the guests and disks on that host; a strip at its edge
is something else that lasts (a VF in use, nova-compute down); an arrow from
lane to lane is a job that libvirt runs.
"""

import html

from tests.replay import columns
from tests.replay import facets
from tests.replay import judge
from tests.replay import timeline

_WIDTH = 800
_TOLD = 226      # width of the column that tells what happens
_NOVA = 150
_GAP = 10
_HEAD = 34
_LINE = 15
_LETTER = 6.4    # an average letter of a 12 px font without serifs
_BOLD = 7.3      # and of its bold face
_SMALL = 6.0     # and of an 11 px font
_ARROW = 26      # height that an arrow takes in its row
_STRIP = 8       # width of a strip at the edge of a lane
_LEAST = 50


def _letters(width, letter=_LETTER):
    return max(4, int(width / letter))


def _text(x, y, lines, look, anchor='start'):
    return ''.join(
        '<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>'
        % (x, y + number * _LINE, look, anchor,
           html.escape(line.replace('->', '\u2192')))
        for number, line in enumerate(lines))


def _box(x, y, width, height, look, radius=4):
    return ('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%d" '
            'class="%s"/>' % (x, y, width, height, radius, look))


def _stretches(values):
    """Return (first, last, value) of each stretch of equal values."""
    out = []
    for number, value in enumerate(values):
        if out and out[-1][2] == value:
            out[-1] = (out[-1][0], number, value)
        else:
            out.append((number, number, value))
    return out


class _Lane(object):
    """What a host's lane holds, and where.

    :param rows: the Rows of the run
    :param host: its name
    """

    def __init__(self, rows, host):
        self.host = host
        self.jobs = []          # for each row: list of Job
        facts = []              # for each row: {thing: Facet}
        things = []
        for row in rows:
            found = [facets.facet(text) for text in row.cells.get(host, ())]
            facts.append({item.thing: item for item in found
                          if item.thing != 'job'})
            self.jobs.append([facets.job(text)
                              for text in row.cells.get(host, ())
                              if facets.job(text)])
            things.extend(item.thing for item in found
                          if item.thing not in things and
                          item.thing != 'job')
        bodies = [thing for thing in things if facets.is_body(thing)]
        # the server itself first, and in the same place in every lane
        bodies = ['guest', 'disk'] * bool(bodies) + [
            thing for thing in bodies if thing not in ('guest', 'disk')]
        self.bars = {thing: _stretches([fact.get(thing) for fact in facts])
                     for thing in bodies}
        self.strips = {thing: _stretches([fact.get(thing) for fact in facts])
                       for thing in things if not facets.is_body(thing)}
        # set by place()
        self.left = self.width = self.bar = 0.0

    @property
    def weight(self):
        """How much room it asks for, compared with other lanes."""
        return max(2, len(self.bars))

    def place(self, left, width):
        self.left = left
        self.width = width
        room = width - _STRIP * len(self.strips) - 4
        self.bar = room / float(max(1, len(self.bars)))

    @property
    def middle(self):
        return self.left + self.bar * max(1, len(self.bars)) / 2 + 2

    def label(self, item):
        """Return the lines that stand in a bar."""
        letters = _letters(self.bar - 6, _SMALL)
        return columns.cell([item.thing, item.state], letters)

    def notes(self, number):
        """Return the Facets whose strips begin in a row."""
        return [item for stretches in self.strips.values()
                for first, _, item in stretches if item and first == number]

    def note_lines(self, item):
        return columns.cell([item.thing, item.state] if len(item.thing) > 12
                            else [item.thing + ' ' + item.state],
                            _letters(self.width - 8, _SMALL))

    def height(self, number):
        """Return the height that a row needs for this lane."""
        labels = [len(self.label(item)) for stretches in self.bars.values()
                  for first, _, item in stretches if item and first == number]
        notes = sum(len(self.note_lines(item)) * _LINE + 6
                    for item in self.notes(number))
        return (8 + _LINE * max([1] + labels) + notes +
                (_ARROW if self.jobs[number] else 0))


class Picture(object):
    """The drawing of one run."""

    def __init__(self, run):
        self.run = run
        self.rows = run.rows()
        self.wrong = [judge.wrong(row) for row in self.rows]
        self.lanes = [_Lane(self.rows, host) for host in run.hosts]
        left = _TOLD + _NOVA + 2 * _GAP
        room = _WIDTH - left - _GAP * (len(self.lanes) - 1)
        weight = float(sum(lane.weight for lane in self.lanes) or 1)
        for lane in self.lanes:
            lane.place(left, room * lane.weight / weight)
            left += lane.width + _GAP
        self.told = [self._told(row, wrong)
                     for row, wrong in zip(self.rows, self.wrong)]
        self.tops = [_HEAD]
        for number, row in enumerate(self.rows):
            self.tops.append(self.tops[-1] + self._height(number, row))
        self.height = self.tops[-1] + 6

    def _told(self, row, wrong):
        """Return (lines that tell what happens, lines of what is wrong)."""
        room = _TOLD - 10
        lines = columns.wrap(row.event.what, _letters(room))
        alerts = [line for text in wrong for line in
                  columns.wrap('\u25b2 ' + text, _letters(room, _BOLD))]
        return lines, alerts

    def _nova(self, row):
        """Return (lines in bold, other lines) of what Nova says."""
        said = row.cells[timeline.NOVA]
        room = _NOVA - 14
        return (columns.cell(said[:1], _letters(room, _BOLD)),
                columns.cell(said[1:], _letters(room)))

    def _height(self, number, row):
        lines, alerts = self.told[number]
        return max([_LEAST, (2 + len(lines) + len(alerts)) * _LINE - 4,
                    (sum(map(len, self._nova(row))) + 1) * _LINE] +
                   [lane.height(number) for lane in self.lanes])

    def svg(self, name):
        """Return the picture; name makes the ids of its parts unique."""
        body = [self._ground(), self._heads(), self._nova_lane()]
        body.extend(self._bars(lane) for lane in self.lanes)
        body.extend(self._strips(lane) for lane in self.lanes)
        body.extend(self._jobs(lane) for lane in self.lanes)
        body.append(self._events())
        title = '%s: %s' % (self.run.title, self.run.verdict)
        return (
            '<svg viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d">'
            '<title id="%s-t">%s</title><desc id="%s-d">%s</desc>%s</svg>'
            % (_WIDTH, self.height, name, name, name, html.escape(title),
               name, html.escape(self._described()), ''.join(body)))

    def _described(self):
        """Return the picture in words, for who cannot see it."""
        parts = []
        for row, wrong in zip(self.rows, self.wrong):
            cells = ['%s: %s.' % (column, ', '.join(
                row.gone.get(column, []) + row.cells[column]) or 'nothing')
                for column in self.run.columns if column in row.fresh]
            parts.append('After %.1f s: %s %s. %s%s' % (
                row.clock, row.event.actor, row.event.what, ' '.join(cells),
                ''.join(' Wrong: %s.' % text for text in wrong)))
        return ' '.join(parts)

    def _ground(self):
        out = []
        for number, wrong in enumerate(self.wrong):
            top, end = self.tops[number], self.tops[number + 1]
            if wrong:
                out.append(_box(-8, top, _WIDTH + 16, end - top, 'alarm', 0))
            out.append('<line x1="0" x2="%d" y1="%.1f" y2="%.1f" '
                       'class="rule"/>' % (_WIDTH, top, top))
        return ''.join(out)

    def _heads(self):
        out = [_text(0, 20, ['time, what happens'], 'head'),
               _text(_TOLD + _GAP + _NOVA / 2.0, 20, ['Nova says'], 'head',
                     'middle')]
        for lane in self.lanes:
            out.append(_text(lane.left + lane.width / 2, 20, [lane.host],
                             'head', 'middle'))
            out.append(_box(lane.left, _HEAD, lane.width,
                            self.height - _HEAD - 4, 'lane', 6))
        return ''.join(out)

    def _events(self):
        out = []
        for number, row in enumerate(self.rows):
            top = self.tops[number] + _LINE + 1
            lines, alerts = self.told[number]
            out.append('<text x="0" y="%.1f"><tspan class="clock">%.1f s'
                       '</tspan><tspan class="actor" dx="8">%s</tspan>'
                       '</text>' % (top, row.clock,
                                    html.escape(row.event.actor)))
            out.append(_text(0, top + _LINE, lines, 'told'))
            out.append(_text(0, top + _LINE * (1 + len(lines)), alerts,
                             'wrong'))
        return ''.join(out)

    def _nova_lane(self):
        out = []
        left = _TOLD + _GAP
        said = [tuple(row.cells[timeline.NOVA]) for row in self.rows]
        for first, last, value in _stretches(said):
            top, end = self.tops[first] + 3, self.tops[last + 1] - 3
            out.append(_box(left, top, _NOVA, end - top,
                            'nova ' + _tone(value), 6))
            lines, rest = self._nova(self.rows[first])
            out.append(_text(left + 7, top + _LINE, lines, 'says'))
            out.append(_text(left + 7, top + _LINE * (1 + len(lines)), rest,
                             'aside'))
        return ''.join(out)

    def _span(self, first, last):
        top = self.tops[first] + 3
        return top, self.tops[last + 1] - 3 - top

    def _bars(self, lane):
        out = []
        for place, (thing, stretches) in enumerate(lane.bars.items()):
            left = lane.left + 2 + place * lane.bar
            middle = left + lane.bar / 2
            for first, last, item in stretches:
                top, height = self._span(first, last)
                if item is None or item.tone == 'none':
                    out.append('<line x1="%.1f" x2="%.1f" y1="%.1f" '
                               'y2="%.1f" class="absent"/>'
                               % (middle, middle, top, top + height))
                    continue
                out.append(_box(left + 2, top, lane.bar - 4, height,
                                'bar %s %s' % (thing.split()[-1], item.tone)))
                out.append(_text(middle, top + 13, lane.label(item), 'label',
                                 'middle'))
        return ''.join(out)

    def _strips(self, lane):
        out = []
        for place, stretches in enumerate(lane.strips.values()):
            left = lane.left + lane.width - _STRIP * (place + 1)
            for first, last, item in stretches:
                if item is not None:
                    top, height = self._span(first, last)
                    out.append(_box(left, top, _STRIP - 2, height,
                                    'strip ' + item.tone, 3))
        for number in range(len(self.rows)):
            y = self.tops[number + 1] - 5
            y -= _ARROW if lane.jobs[number] else 0
            for item in lane.notes(number):
                lines = lane.note_lines(item)
                y -= len(lines) * _LINE + 2
                out.append(_box(lane.left + 2, y, lane.width - 4,
                                len(lines) * _LINE + 2,
                                'note ' + item.tone, 5))
                out.append(_text(lane.left + lane.width / 2, y + 12, lines,
                                 'label ' + item.tone, 'middle'))
                y -= 4
        return ''.join(out)

    def _jobs(self, lane):
        return ''.join(self._arrow(number, lane, job)
                       for number, jobs in enumerate(lane.jobs)
                       for job in jobs)

    def _arrow(self, number, lane, job):
        y = self.tops[number + 1] - 3 - _ARROW / 2.0
        start = lane.middle
        target = next((other.middle for other in self.lanes
                       if other.host == job.target), None)
        label = job.percent or 'job'
        end = target
        if target is None:
            # a host without a lane: a short arrow that names it
            label = job.target
            end = start + 60
        tip = 12 if end > start else -12
        half = 8
        points = [(start, y - half), (end - tip, y - half),
                  (end - tip, y - half - 4), (end, y),
                  (end - tip, y + half + 4), (end - tip, y + half),
                  (start, y + half)]
        return ('<polygon class="job" points="%s"/>'
                % ' '.join('%.1f,%.1f' % point for point in points) +
                _text((start + end - tip) / 2, y + 4, [label], 'percent',
                      'middle'))


def _tone(said):
    """Return the look of what Nova says."""
    if 'held by the guard' in said:
        return 'held'
    server = judge.instance(said)
    if server and server.vm == 'ERROR':
        return 'error'
    return 'busy' if server and server.task else 'idle'
