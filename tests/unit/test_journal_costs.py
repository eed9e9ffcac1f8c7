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

"""What the journal costs in a live migration: fsyncs and bytes, counted."""

import os
from unittest import mock

import fixtures
from oslotest import base

from nova_migration_guard import journal

UUID = '6d8a2b0e-4c1c-4a53-9f5b-0c1d3a1f7e11'


class JournalCostsTestCase(base.BaseTestCase):

    def setUp(self):
        super(JournalCostsTestCase, self).setUp()
        self.journal = journal.Journal(
            self.useFixture(fixtures.TempDir()).path, 'host-a')
        self.begin = journal.Entry(
            operation=journal.LIVE_MIGRATION, phase=journal.PREPARING,
            instance=UUID, migration=UUID, source='host-a',
            destination='host-b', vm_state='active', request_id='req',
            begun=1.0, block_migration=True, migrate_data={'a': 'x' * 5000},
            source_bdms={'b': 'x' * 5000})

    def _fsyncs(self, step, *args, **kwargs):
        with mock.patch.object(os, 'fsync') as fsync:
            step(*args, **kwargs)
        return fsync.call_count

    def test_fsyncs_of_one_migration(self):
        # a file and its folder for each phase, the folder for the end
        self.assertEqual(2, self._fsyncs(self.journal.begin, self.begin))
        for phase in (journal.PREPARED, journal.STARTED,
                      journal.POST_MIGRATION):
            self.assertEqual(2, self._fsyncs(
                self.journal.advance, UUID, phase))
            # a phase that it has passed costs nothing
            self.assertEqual(0, self._fsyncs(
                self.journal.advance, UUID, phase))
        self.assertEqual(1, self._fsyncs(self.journal.end, UUID))
        self.assertEqual(0, self._fsyncs(self.journal.end, UUID))

    def test_bytes(self):
        """What Nova's data takes, and a few hundred bytes."""
        self.journal.begin(self.begin)
        size = os.path.getsize(os.path.join(
            self.journal.folder, UUID + journal.ENDING))
        self.assertLess(size, 10000 + 700)

    def test_nothing_is_left(self):
        """The folder does not grow with the number of migrations."""
        for _ in range(50):
            self.journal.begin(self.begin)
            self.journal.end(UUID)
        self.assertEqual(
            [], [name for name in os.listdir(self.journal.folder)
                 if name.endswith((journal.ENDING, '.new'))])
