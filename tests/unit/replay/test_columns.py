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

import ddt
import testtools

from tests.replay import columns

_TEXT = ('ACTIVE/migrating on host-a with 40 % of a-very-long-name/of/a/path '
         '-> host-b after 3 s')


@ddt.ddt
class WrapTestCase(testtools.TestCase):

    @ddt.data(*range(1, 90))
    def test_no_line_is_too_wide_and_nothing_is_lost(self, width):
        lines = columns.wrap(_TEXT, width)
        self.assertTrue(all(0 < len(line) <= width for line in lines), lines)
        self.assertEqual(_TEXT.replace(' ', ''),
                         ''.join(lines).replace(' ', ''))

    def test_arrow_and_number_keep_what_belongs_to_them(self):
        self.assertEqual(['job', '-> host-b', '40 %'],
                         columns.wrap('job -> host-b 40 %', 9))
        self.assertEqual(['migration error', '\u2192 host-b'],
                         columns.wrap('migration error \u2192 host-b', 19))

    def test_long_word_is_cut_where_it_has_a_joint(self):
        self.assertEqual(['ACTIVE/', 'migrating'],
                         columns.wrap('ACTIVE/migrating', 10))

    def test_nothing(self):
        self.assertEqual([], columns.wrap('', 10))


class FitTestCase(testtools.TestCase):

    rows = [[['time'], ['Nova says']],
            [['0.0 s', 'boots a server'], ['ACTIVE on host-a']]]

    def test_as_wide_as_the_text_where_there_is_room(self):
        self.assertEqual([14, 16], columns.fit(self.rows, 100))

    def test_never_wider_than_the_room(self):
        for room in range(2, 30):
            widths = columns.fit(self.rows, room)
            self.assertEqual(room, sum(widths))
            self.assertTrue(all(widths), widths)

    def test_room_goes_to_the_column_that_needs_it(self):
        rows = [[['ab'], ['one two three four five six seven eight']]]
        self.assertEqual([2, 20], columns.fit(rows, 22))
