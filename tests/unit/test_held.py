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

"""The records of held instances."""

import json
import os
import pathlib
import stat
import time

import fixtures
from oslotest import base

from nova_migration_guard import held
from tests.unit.cmd import base as cmd_base

UUID = cmd_base.UUID


class RecordsTestCase(base.BaseTestCase):

    def setUp(self):
        super(RecordsTestCase, self).setUp()
        self.parent = self.useFixture(fixtures.TempDir()).path
        self.records = held.Records(self.parent, 'host-a')
        self.folder = pathlib.Path(self.parent, 'host-a', 'held')

    def write(self, uuid=UUID, **changes):
        self.records.write(uuid, held.Held('why', since=5.0),
                           cmd_base.known(**changes))
        return self.folder / (uuid + '.json')

    def test_what_is_written_is_read(self):
        path = self.write(phase='started', reachable=False)
        record = held.load(path.read_text(), 'host-a', UUID)
        known = cmd_base.known(phase='started', reachable=False)
        self.assertEqual(known.observation.job, record.facts.observation.job)
        for name in ('records', 'peer', 'requested', 'phase', 'reachable',
                     'guest', 'job', 'destination'):
            self.assertEqual(getattr(known, name),
                             getattr(record.facts, name))

    def test_for_its_owner_only(self):
        path = self.write()
        self.assertEqual(0o600, stat.S_IMODE(os.stat(str(path)).st_mode))
        self.assertEqual(0o700, stat.S_IMODE(
            os.stat(str(self.folder)).st_mode))

    def test_damaged(self):
        text = self.write().read_text()
        for change in ({'version': 2}, {'since': 'x'}, {'host': 'host-b'},
                       {'instance': 'x'}, {'more': 1}, {'facts': {}},
                       {'facts': {'peer': 'NOWHERE'}}, {'reason': None}):
            changed = json.dumps(dict(json.loads(text), **change))
            self.assertRaises(ValueError, held.load, changed, 'host-a', UUID)
        for changed in ('[]', '{', ''):
            self.assertRaises(ValueError, held.load, changed, 'host-a', UUID)

    def test_since_outlives_a_process(self):
        self.assertAlmostEqual(
            time.time(), self.records.since(UUID), delta=60)
        self.write()
        self.assertEqual(5.0, held.Records(
            self.parent, 'host-a').since(UUID))

    def test_removed(self):
        path = self.write()
        other = self.write(cmd_base.OTHER)
        self.records.keep_only({UUID})
        self.assertTrue(path.exists())
        self.assertFalse(other.exists())
        self.records.remove(UUID)
        self.records.remove(UUID)
        self.assertFalse(path.exists())

    def test_disk_is_full(self):
        """Nothing is raised, whatever cannot be written."""
        pathlib.Path(self.parent, 'host-a').write_text('no folder')
        self.records.write(UUID, held.Held('why'), None)
        self.records.show_running()
        self.records.keep_only(set())
        self.records.remove(UUID)

    def test_running(self):
        folder = str(self.folder.parent)
        self.assertFalse(held.runs(folder))
        self.records.show_running()
        self.assertTrue(held.runs(folder))
        self.records.hide_running()
        self.assertFalse(held.runs(folder))
