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
import os
import pathlib
import stat
import threading

import ddt
import fixtures
from oslotest import base

from nova_migration_guard import journal

UUID = '6d8a2b0e-4c1c-4a53-9f5b-0c1d3a1f7e11'
OTHER = '7d8a2b0e-4c1c-4a53-9f5b-0c1d3a1f7e12'
HIDDEN = 'open-sesame-1234'


def entry(uuid=UUID, **fields):
    return journal.Entry(**dict({
        'operation': journal.LIVE_MIGRATION, 'phase': journal.PREPARING,
        'instance': uuid, 'migration': OTHER, 'source': 'host-a',
        'destination': 'host-b', 'vm_state': 'active',
        'request_id': 'req-1', 'begun': 1000.5, 'block_migration': True,
        'migrate_data': {'secret': HIDDEN}, 'source_bdms': {}}, **fields))


def block_operation(uuid=UUID, **fields):
    return journal.BlockOperation(**dict({
        'operation': journal.VOLUME_SWAP, 'phase': journal.BEGUN,
        'instance': uuid, 'host': 'host-a', 'subject': 'subject',
        'request_id': 'req-1', 'begun': 1000.5}, **fields))


@ddt.ddt
class JournalTestCase(base.BaseTestCase):

    def setUp(self):
        super(JournalTestCase, self).setUp()
        self.parent = self.useFixture(fixtures.TempDir()).path
        self.journal = journal.Journal(self.parent, 'host-a')
        self.folder = pathlib.Path(self.parent, 'host-a')
        self.path = self.folder / (UUID + '.json')
        self.log = self.useFixture(fixtures.FakeLogger(
            'nova_migration_guard'))

    def mode(self, path):
        return stat.S_IMODE(os.stat(str(path)).st_mode)

    def names(self):
        return sorted(path.name for path in self.folder.iterdir()
                      if 'lock' not in path.name and
                      not path.name.startswith('migration-guard-'))

    def test_begin_and_read(self):
        self.assertIsNone(self.journal.entry(UUID))
        self.journal.begin(entry())
        self.assertEqual(entry(), self.journal.entry(UUID))
        self.assertEqual({UUID: entry()}, self.journal.entries())

    def test_for_its_owner_only(self):
        self.folder.mkdir(mode=0o755)
        self.journal.begin(entry())
        self.assertEqual(0o700, self.mode(self.folder))
        self.assertEqual(0o600, self.mode(self.path))

    def test_phases_go_forward(self):
        self.journal.begin(entry())
        for phase in journal.PHASES:
            self.assertTrue(self.journal.advance(UUID, phase))
            self.assertEqual(phase, self.journal.entry(UUID).phase)
        self.assertTrue(self.journal.advance(
            UUID, journal.PREPARED, migrate_data={}))
        self.assertEqual(journal.POST_MIGRATION,
                         self.journal.entry(UUID).phase)
        self.assertEqual({'secret': HIDDEN},
                         self.journal.entry(UUID).migrate_data)

    def test_advance_adds_what_is_known(self):
        self.journal.begin(entry())
        self.journal.advance(UUID, journal.STARTED, domain_xml='<domain/>')
        self.assertEqual('<domain/>', self.journal.entry(UUID).domain_xml)

    def test_advance_without_an_entry(self):
        self.assertFalse(self.journal.advance(UUID, journal.STARTED))
        self.assertEqual([], self.names())

    def test_end(self):
        self.journal.begin(entry())
        self.journal.begin(entry(OTHER))
        self.journal.end(UUID)
        self.journal.end(UUID)
        self.assertEqual([OTHER], list(self.journal.entries()))

    def test_block_operations(self):
        """Beside the migration of the instance, and each by itself."""
        late = block_operation(subject='b', begun=2000)
        early = block_operation(subject='c', begun=1000)
        for operation in (entry(), late, early,
                          block_operation(OTHER, subject='b')):
            self.journal.begin(operation)
        self.assertEqual([early, late], self.journal.block_operations(UUID))
        self.assertEqual(3, len(self.journal.block_operations()))
        self.assertEqual(entry(), self.journal.entry(UUID))
        self.assertEqual([UUID], list(self.journal.entries()))
        self.assertTrue(self.journal.advance(
            UUID, journal.COPYING, 'b', disk='vda', domain_xml='<domain/>'))
        self.assertFalse(self.journal.advance(UUID, journal.COPYING, 'd'))
        self.journal.end(UUID, 'c')
        found, = self.journal.block_operations(UUID)
        self.assertEqual((journal.COPYING, 'vda', '<domain/>'),
                         (found.phase, found.disk, found.domain_xml))
        self.journal.end(UUID)
        self.assertEqual([found], self.journal.block_operations(UUID))

    def test_block_operation_is_for_its_owner_only(self):
        self.journal.begin(block_operation(details={'secret': HIDDEN}))
        path = self.folder / (UUID + '+subject.json')
        self.assertEqual(0o600, self.mode(path))
        self.assertNotIn(HIDDEN, repr(self.journal.block_operations(UUID)))

    def test_subject_is_no_path(self):
        self.journal.begin(block_operation(subject='../../x'))
        self.assertEqual('../../x', self.journal.block_operations(
            UUID)[0].subject)
        self.assertEqual(['6d8a2b0e-4c1c-4a53-9f5b-0c1d3a1f7e11+'
                          '..%2F..%2Fx.json'], self.names())

    @ddt.data({'operation': journal.LIVE_MIGRATION}, {'phase': 'started'},
              {'host': 'host-b'}, {'disk': 7}, {'details': None},
              {'instance': OTHER})
    def test_not_a_block_operation(self, fields):
        self.journal.begin(block_operation())
        path = self.folder / (UUID + '+subject.json')
        content = json.loads(path.read_text())
        path.write_text(json.dumps(dict(content, **fields)))
        self.assertEqual([], self.journal.block_operations(UUID))
        self.assertEqual([path.name + '.rejected'], self.names())
        self.assertIn(path.name, self.log.output)

    def test_of_each_host(self):
        other = journal.Journal(self.parent, 'host/b')
        other.begin(entry(source='host/b'))
        self.assertEqual({}, self.journal.entries())
        self.assertEqual([UUID], list(other.entries()))

    def stored(self, **changes):
        """The text of a file, changed."""
        self.journal.begin(entry())
        content = dict(json.loads(self.path.read_text()), **changes)
        self.path.unlink()
        return json.dumps({name: value for name, value in content.items()
                           if value != 'left out'})

    @ddt.data(
        {'version': 2}, {'version': None}, {'version': 'left out'},
        {'phase': 'ended'}, {'operation': 'resize'}, {'source': 'host-b'},
        {'instance': OTHER}, {'begun': 'yesterday'}, {'migrate_data': []},
        {'block_migration': 1}, {'destination': None}, {'more': 1},
        {'vm_state': 'left out'})
    def test_set_aside(self, changes):
        text = self.stored(**changes)
        self.path.write_text(text)
        self.assertIsNone(self.journal.entry(UUID))
        self.assertEqual([self.path.name + '.rejected'], self.names())
        self.assertEqual(
            text, pathlib.Path(str(self.path) + '.rejected').read_text())
        self.assertIn(str(self.path), self.log.output)
        self.assertNotIn(HIDDEN, self.log.output)

    @ddt.data('', '{', '[]', '"text"', 'null', '\x00', '{"version": 1}')
    def test_no_entry_at_all(self, text):
        self.folder.mkdir()
        self.path.write_text(text)
        self.assertEqual({}, self.journal.entries())
        self.assertEqual([self.path.name + '.rejected'], self.names())

    def test_cut_anywhere(self):
        text = self.stored()
        for length in range(0, len(text) - 1, 7):
            self.path.write_text(text[:length])
            self.assertIsNone(self.journal.entry(UUID))
        self.assertNotIn(HIDDEN, self.log.output)

    def test_not_text(self):
        self.folder.mkdir()
        self.path.write_bytes(b'\xff\xfe')
        self.assertIsNone(self.journal.entry(UUID))

    def test_nothing_that_was_set_aside_is_lost(self):
        self.folder.mkdir()
        for text in ('first', 'second', 'third'):
            self.path.write_text(text)
            self.journal.entry(UUID)
        self.assertEqual(
            {'first', 'second', 'third'},
            {path.read_text() for path in self.folder.glob('*.rejected*')})

    def test_half_written(self):
        """A process that died while it wrote: the entry before is valid."""
        self.journal.begin(entry())
        pathlib.Path(str(self.path) + '.new').write_text('{"versi')
        self.assertEqual([UUID], list(self.journal.entries()))
        self.journal.advance(UUID, journal.STARTED)
        self.assertEqual(journal.STARTED, self.journal.entry(UUID).phase)

    def test_folder_is_a_file(self):
        self.folder.write_text('')
        for call in (lambda: self.journal.begin(entry()),
                     lambda: self.journal.entry(UUID),
                     self.journal.entries,
                     lambda: self.journal.advance(UUID, journal.STARTED),
                     lambda: self.journal.end(UUID)):
            error = self.assertRaises(journal.JournalError, call)
            self.assertIn(str(self.folder), str(error))

    def test_disk_is_full(self):
        self.journal.begin(entry())

        def fsync(descriptor):
            raise OSError(28, 'No space left on device')
        self.useFixture(fixtures.MockPatchObject(os, 'fsync', fsync))
        error = self.assertRaises(
            journal.JournalError, self.journal.advance, UUID,
            journal.STARTED)
        self.assertIn('No space left', str(error))
        self.assertEqual(journal.PREPARING, self.journal.entry(UUID).phase)

    def test_secrets_are_not_shown(self):
        self.assertNotIn(HIDDEN, repr(entry()))
        self.assertNotIn(HIDDEN, str(entry()))

    def test_writers_side_by_side(self):
        def work(number):
            uuid = UUID[:-2] + '%02d' % number
            self.journal.begin(entry(uuid))
            for phase in journal.PHASES:
                self.journal.advance(uuid, phase)
        threads = [threading.Thread(target=work, args=(number,))
                   for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(
            [journal.POST_MIGRATION] * 8,
            [found.phase for found in self.journal.entries().values()])
