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

import io

import ddt
import testtools

from tests.replay import style
from tests.replay import table
from tests.replay import text
from tests.replay import timeline
from tests.unit.replay import samples

_PLAIN = style.Style(colour=False, unicode=True)
_ASCII = style.Style(colour=False, unicode=False)
_COLOUR = style.Style(colour=True, unicode=True)


def _runs(*records):
    return [timeline.from_dict(record()) for record in records]


_RESTART = (samples.restart_stock, samples.restart_guarded)
_RACE = (samples.race_stock, samples.race_guarded)


@ddt.ddt
class ScenarioTestCase(testtools.TestCase):

    @ddt.data(20, 40, 63, 64, 80, 100, 120, 160, 189, 190, 200, 300)
    def test_fits_the_terminal(self, width):
        for records in (_RESTART, _RACE):
            for looks in (_PLAIN, _ASCII, _COLOUR):
                lines = text.scenario(_runs(*records), width, looks)
                widest = max(lines, key=table.visible)
                self.assertTrue(table.visible(widest) <= width, widest)

    @ddt.data(64, 80, 160)
    def test_columns_and_verdicts(self, width):
        lines = text.scenario(_runs(*_RESTART), width, _PLAIN)
        heads = [line for line in lines if line.startswith('time, what')]
        self.assertEqual(2, len(heads))
        for name in ('Nova says', 'host-a', 'host-b', 'host-c'):
            self.assertIn(name, heads[0])
        # the columns of the two match
        self.assertEqual(*heads)
        whole = '\n'.join(lines)
        self.assertTrue(whole.index('[LOST DISK]') < whole.index('[SAFE]'))
        self.assertTrue(whole.index('STOCK NOVA 34.0.0') <
                        whole.index('GUARDED NOVA 34.0.0'))

    def test_stock_is_first_whatever_ran_first(self):
        runs = _runs(*_RESTART)
        self.assertEqual(text.scenario(runs, 100, _PLAIN),
                         text.scenario(runs[::-1], 100, _PLAIN))

    def test_side_by_side_where_there_is_room(self):
        lines = text.scenario(_runs(*_RESTART), 200, _PLAIN)
        together = [line for line in lines if 'STOCK NOVA' in line]
        self.assertEqual(1, len(together))
        self.assertIn('GUARDED NOVA', together[0])

    def test_unchanged_cells_are_not_repeated(self):
        lines = text.scenario(_runs(samples.restart_stock), 160, _PLAIN)
        row = next(line for line in lines if line.startswith('1.4 s'))
        self.assertEqual([_PLAIN.same] * 3,
                         [cell.strip() for number, cell in
                          enumerate(row.split(_PLAIN.bar))
                          if number in (1, 3, 4)])

    def test_what_is_wrong_stands_under_its_row(self):
        lines = text.scenario(_runs(samples.restart_stock), 160, _PLAIN)
        alerts = [line for line in lines if line.startswith(_PLAIN.alert)]
        self.assertEqual(3, len(alerts))
        self.assertIn('it runs on host-b', alerts[-1])

    def test_only_what_changed_in_a_cell_is_bold(self):
        whole = '\n'.join(text.scenario(_runs(samples.restart_stock), 160,
                                        _COLOUR))
        self.assertIn('\x1b[1mjob \u2192 host-b 55 %\x1b[0m', whole)
        self.assertIn('\x1b[2mdisk complete\x1b[0m', whole)

    def test_plain_has_no_escapes_and_ascii_is_ascii(self):
        for looks in (_PLAIN, _ASCII):
            whole = '\n'.join(text.scenario(_runs(*_RESTART), 80, looks))
            self.assertNotIn('\x1b', whole)
        whole.encode('ascii')

    def test_one_run_has_no_comparison(self):
        lines = text.scenario(_runs(samples.restart_guarded), 100, _PLAIN)
        self.assertNotIn('in the end', '\n'.join(lines))
        lines = text.scenario(_runs(*_RESTART), 100, _PLAIN)
        self.assertIn('in the end', '\n'.join(lines))

    def test_unknown_scenario_and_verdict(self):
        record = samples.race_stock()
        record.update(scenario='of-tomorrow', verdict='ODD')
        lines = text.scenario([timeline.from_dict(record)], 100, _PLAIN)
        self.assertIn('of-tomorrow', lines)
        self.assertIn('[ODD]', lines)

    def test_empty_cell(self):
        record = samples.race_stock()
        record['events'][1]['hosts']['host-b'] = ''
        lines = text.scenario([timeline.from_dict(record)], 100, _PLAIN)
        row = next(line for line in lines if line.startswith('0.4 s'))
        self.assertTrue(row.endswith('no guest'), row)
        record['events'][0]['hosts']['host-b'] = ''
        lines = text.scenario([timeline.from_dict(record)], 100, _PLAIN)
        row = next(line for line in lines if line.startswith('0.0 s'))
        self.assertTrue(row.endswith('nothing'), row)

    def test_summary(self):
        lines = text.summary(_runs(*(_RESTART + _RACE)), 80, _PLAIN)
        self.assertEqual(6, len(lines))
        self.assertIn('VF GIVEN TWICE', lines[4])


class _Stream(io.StringIO):
    encoding = 'utf-8'

    def __init__(self, tty, encoding='utf-8'):
        super().__init__()
        self._tty = tty
        self.encoding = encoding

    def isatty(self):
        return self._tty


@ddt.ddt
class StyleTestCase(testtools.TestCase):

    @ddt.data(
        (True, {}, True),
        (False, {}, False),
        (True, {'NO_COLOR': '1'}, False),
        # https://no-color.org: an empty one says nothing
        (True, {'NO_COLOR': ''}, True),
        (True, {'TERM': 'dumb'}, False),
    )
    @ddt.unpack
    def test_colour(self, tty, environ, wanted):
        self.assertEqual(wanted, style.for_stream(_Stream(tty),
                                                  environ).colour)

    @ddt.data(('utf-8', '\u2192'), ('ascii', '->'), ('latin-1', '->'),
              (None, '->'), ('no-such-code', '->'))
    @ddt.unpack
    def test_signs(self, encoding, arrow):
        self.assertEqual(
            arrow, style.for_stream(_Stream(False, encoding), {}).arrow)
