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

"""nova-compute is upgraded while live migrations run."""

import os
import shutil

import fixtures
import testtools

from nova import context
from nova import objects

from nova_migration_guard import journal
from nova_migration_guard.nova_host import plan
from tests.functional import recorded_entries as recorded
from tests.functional import releases


class JournalOfReleasesTestCase(testtools.TestCase):
    """Entries that were written on 29.2.0 and 33.0.2."""

    def _entry(self, release):
        folder = self.useFixture(fixtures.TempDir()).join('journal')
        shutil.copytree(os.path.join(recorded.FOLDER, 'journal-' + release),
                        folder)
        return journal.Journal(folder, recorded.HOST).entry(recorded.INSTANCE)

    def _plan(self, entry):
        objects.register_all()
        return plan.Plans(None).plan(
            context.get_admin_context(), None, entry, (), entry.destination)

    def _must_be_read(self, release):
        written_on = tuple(int(number) for number in release.split('.'))
        if written_on > releases.VERSION:
            self.skipTest('an upgrade goes forward')
        found = self._plan(self._entry(release))
        self.assertEqual('host-b', found.destination)
        self.assertTrue(found.block_migration)
        self.assertEqual(recorded.MIGRATION, found.migrate_data.migration.uuid)
        self.assertEqual([recorded.PORT],
                         [vif.port_id for vif in found.migrate_data.vifs])
        self.assertEqual([recorded.VOLUME],
                         [bdm.serial for bdm in found.migrate_data.bdms])
        self.assertEqual([recorded.ATTACHMENT],
                         [bdm.attachment_id for bdm in found.source_bdms])

    def test_29(self):
        self._must_be_read('29.2.0')

    def test_33(self):
        self._must_be_read('33.0.2')

    def test_of_a_release_to_come(self):
        entry = self._entry('33.0.2')
        entry.migrate_data['nova_object.version'] = '1.99'
        self.assertRaises(plan.Unsettled, self._plan, entry)
