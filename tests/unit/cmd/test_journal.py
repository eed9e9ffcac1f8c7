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

from nova_migration_guard.cmd import errors
from nova_migration_guard import journal
from tests.unit.cmd import base


class JournalTestCase(base.CommandTestCase):

    def test_nothing(self):
        self.assertEqual([], self.show('journal', 'list'))

    def test_list(self):
        self.journal.begin(base.entry())
        self.journal.begin(base.swap())
        self.assertEqual(
            [(base.UUID, 'volume-swap', 'volume-1', 'copying', 'ok'),
             (base.UUID, 'live-migration', 'to host-b', 'started', 'ok')],
            [(row['Instance'], row['Operation'], row['Subject'],
              row['Phase'], row['State'])
             for row in self.show('journal', 'list')])

    def test_damaged(self):
        """It is shown, and left for nova-compute to set aside."""
        self.journal.begin(base.entry())
        path = self.folder / (base.UUID + journal.ENDING)
        path.write_text(path.read_text()[:100])
        (self.folder / (base.OTHER + '.json.rejected')).write_text('x')
        damaged, rejected = self.show('journal', 'list')
        self.assertIn('damaged: ', damaged['State'])
        self.assertEqual((base.OTHER, 'set aside as %s.json.rejected' %
                          base.OTHER),
                         (rejected['Instance'], rejected['State']))
        self.assertTrue(path.exists())
        self.must_fail(errors.FAILED, 'damaged', 'journal', 'show', base.UUID)

    def test_of_another_host(self):
        self.journal.begin(base.entry(source='host-x'))
        row, = self.show('journal', 'list')
        self.assertEqual('damaged: it is of host host-x', row['State'])

    def test_show(self):
        self.journal.begin(base.entry())
        shown = self.show('journal', 'show', base.UUID)
        self.assertEqual(('live-migration', 'started', 'host-b'),
                         (shown['operation'], shown['phase'],
                          shown['destination']))
        self.assertNotIn('open-sesame', self.stdout)

    def test_show_operation_on_a_disk(self):
        self.journal.begin(base.entry())
        self.journal.begin(base.swap())
        self.journal.begin(base.swap(subject='volume-2', disk='vdb'))
        shown = self.show('journal', 'show', base.UUID, '--subject',
                          'volume-2')
        self.assertEqual(('volume-swap', 'vdb'),
                         (shown['operation'], shown['disk']))
        self.assertNotIn('open-sesame', self.stdout)
        self.assertEqual('live-migration', self.show(
            'journal', 'show', base.UUID)['operation'])
        self.journal.end(base.UUID)
        self.must_fail(errors.FAILED, '--subject', 'journal', 'show',
                       base.UUID)

    def test_show_nothing(self):
        self.must_fail(errors.NOT_FOUND, 'no such entry',
                       'journal', 'show', base.UUID)

    def test_no_rights(self):
        self.journal.begin(base.entry())
        self.as_nobody()
        for command in (['list'], ['show', base.UUID]):
            self.must_fail(errors.NO_RIGHTS, 'for root only', 'journal',
                           *command)
