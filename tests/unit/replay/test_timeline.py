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

import json

import ddt
import fixtures
import testtools

from tests.replay import timeline
from tests.unit.replay import samples


def _without(key):
    record = samples.restart_stock()
    del record[key]
    return record


def _with(**values):
    record = samples.restart_stock()
    record.update(values)
    return record


def _with_event(**values):
    record = samples.restart_stock()
    record['events'][1].update(values)
    return record


@ddt.ddt
class FromDictTestCase(testtools.TestCase):

    @ddt.data('scenario', 'guard', 'release', 'verdict', 'safe', 'events')
    def test_names_what_is_missing(self, key):
        exc = self.assertRaises(timeline.BadRecord, timeline.from_dict,
                                _without(key))
        self.assertIn("no '%s'" % key, str(exc))

    @ddt.data(
        ([], 'not an object'),
        (_with(guard='maybe'), "'maybe'"),
        (_with(safe='yes'), "'safe'"),
        (_with(safe=1), "'safe'"),
        (_with(release=34), "'release'"),
        (_with(events={}), "'events'"),
        (_with(events=[]), 'no events'),
        (_with(events=['boom']), 'event 1 '),
        (_with_event(t='soon'), "'t' of event 2"),
        (_with_event(t=True), "'t' of event 2"),
        (_with_event(nova=None), "'nova' of event 2"),
        (_with_event(hosts=[]), "'hosts' of event 2"),
        (_with_event(hosts={'host-a': 3}), "'host-a' of hosts of event 2"),
    )
    @ddt.unpack
    def test_names_what_is_wrong(self, record, words):
        exc = self.assertRaises(timeline.BadRecord, timeline.from_dict,
                                record)
        self.assertIn(words, str(exc))


class RowsTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.run_ = timeline.from_dict(samples.restart_stock())

    def test_columns_are_nova_and_each_host(self):
        self.assertEqual(['Nova says', 'host-a', 'host-b', 'host-c'],
                         self.run_.columns)

    def test_first_row_is_all_fresh(self):
        row = self.run_.rows()[0]
        self.assertEqual(set(self.run_.columns), set(row.fresh))
        self.assertEqual({'guest running', 'disk complete'},
                         row.fresh['host-a'])

    def test_later_rows_hold_what_changed(self):
        row = self.run_.rows()[2]
        self.assertEqual({'host-a': {'nova-compute down',
                                     'job -> host-b 55 %'}}, row.fresh)
        self.assertEqual(
            ['nova-compute down', 'guest running', 'job -> host-b 55 %',
             'disk complete'], row.cells['host-a'])

    def test_what_went_away_is_said_once(self):
        rows = self.run_.rows()
        self.assertEqual({'host-a': ['nova-compute up'], 'host-b': []},
                         rows[3].gone)
        self.assertEqual(['no guest', 'no job'], rows[5].gone['host-a'])
        self.assertEqual(['no disk'], rows[6].gone['host-a'])
        self.assertEqual([], rows[6].cells['host-a'])

    def test_clock_starts_with_the_first_event(self):
        self.assertEqual([0.0, 0.9, 1.4],
                         [round(row.clock, 2)
                          for row in self.run_.rows()[:3]])

    def test_host_that_is_not_named_is_as_it_was(self):
        record = samples.restart_stock()
        del record['events'][1]['hosts']['host-a']
        row = timeline.from_dict(record).rows()[1]
        self.assertEqual(['guest running', 'disk complete'],
                         row.cells['host-a'])
        self.assertNotIn('host-a', row.fresh)


class FilesTestCase(testtools.TestCase):

    def _file(self, content):
        path = self.useFixture(fixtures.TempDir()).join('record.json')
        with open(path, 'wb') as stream:
            stream.write(content)
        return path

    def _refused(self, path):
        return str(self.assertRaises(timeline.BadRecord, timeline.load,
                                     path))

    def test_load(self):
        content = json.dumps(samples.race_guarded()).encode()
        run = timeline.load(self._file(content))
        self.assertEqual('evacuation-race', run.scenario)
        self.assertTrue(run.safe)

    def test_no_file(self):
        self.assertIn('cannot read', self._refused('/nowhere/record.json'))

    def test_empty_file(self):
        self.assertIn('empty', self._refused(self._file(b' \n')))

    def test_half_a_file(self):
        self.assertIn('not JSON', self._refused(self._file(b'{"guard": ')))

    def test_no_text(self):
        self.assertIn('cannot read', self._refused(self._file(b'\xff\xfe')))

    def test_dumps_is_what_was_loaded(self):
        records = [samples.restart_stock(), samples.restart_guarded()]
        text = timeline.dumps([timeline.from_dict(record)
                               for record in records])
        self.assertEqual(records, json.loads(text))
