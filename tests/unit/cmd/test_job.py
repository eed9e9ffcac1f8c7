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
from nova_migration_guard import facts
from nova_migration_guard import libvirt_jobs
from tests.unit.cmd import base
from tests.unit import test_libvirt_jobs

OUT = {'type': 2, 'operation': 5, 'time_elapsed': 5000,
       'data_total': 400, 'data_processed': 100}


class JobListTestCase(base.CommandTestCase):

    def add(self, uuid=base.UUID, **answers):
        self.libvirt.domains[uuid] = base.Domain(uuid, **answers)

    def rows(self):
        return [tuple(row[name] for name in (
            'Instance', 'Kind', 'Direction', 'Disk', 'Phase', 'Progress',
            'Owner')) for row in self.show('job', 'list')]

    def row(self):
        row, = self.rows()
        return row[1:]

    def test_nothing(self):
        self.add()
        self.assertEqual([], self.rows())

    def test_migration_of_a_nova_compute_that_runs(self):
        self.add(jobStats=OUT)
        self.journal.begin(base.entry())
        self.records.show_running()
        self.assertEqual(
            [(base.UUID, 'migration', 'out', '', 'disks', '25%', 'nova')],
            self.rows())

    def test_migration_of_one_that_is_down(self):
        self.add(jobStats=dict(OUT, memory_processed=5))
        self.journal.begin(base.entry())
        self.assertEqual(('memory', '25%', 'unowned'), self.row()[3:])

    def test_migration_of_a_held_instance(self):
        self.add(jobStats=dict(OUT, type=libvirt_jobs.JobType.CANCELLED))
        self.records.show_running()
        self.hold()
        self.assertEqual(('ending', '25%', 'unowned'), self.row()[3:])

    def test_migration_of_another_tool(self):
        self.add(jobStats=OUT)
        self.assertEqual('foreign', self.row()[-1])
        self.hold(records=(facts.Record(
            7, 'completed', base.HOST, 'host-b', 1.0),))
        self.assertEqual('foreign', self.row()[-1])

    def test_adopted_migration(self):
        self.add(jobStats=OUT)
        self.journal.begin(base.entry())
        self.records.show_adopted(base.UUID)
        self.assertEqual('unowned', self.row()[-1])
        self.records.show_running()
        self.assertEqual('adopted', self.row()[-1])
        self.records.hide_adopted(base.UUID)
        self.assertEqual('nova', self.row()[-1])

    def test_post_copy(self):
        self.add(jobStats=OUT, state=[3, 12])
        self.journal.begin(base.entry())
        self.assertEqual('post-copy', self.row()[3])

    def test_arriving_guest(self):
        self.add(jobStats=test_libvirt_jobs.Error(
            libvirt_jobs.OPERATION_UNSUPPORTED))
        self.assertEqual(('migration', 'in', '', '', '', 'source'),
                         self.row())

    def test_backup(self):
        self.add(jobStats={'type': 2, 'operation': 9})
        self.assertEqual(('backup', '', '', '', '', 'foreign'), self.row())

    def test_block_jobs(self):
        jobs = {'vda': {'type': 2, 'cur': 1, 'end': 2}, 'vdb': {'type': 1}}
        self.add(blockJobInfo=lambda disk, flags: jobs.get(disk, {}))
        self.journal.begin(base.swap())
        self.assertEqual(
            [(base.UUID, 'volume-swap', '', 'vda', 'copying', '50%',
              'unowned'),
             (base.UUID, 'block pull', '', 'vdb', '', '', 'foreign')],
            self.rows())

    def test_domain_that_does_not_answer(self):
        self.add(jobStats=test_libvirt_jobs.Error(68))
        self.assertIn('unknown: libvirt error 68', self.row()[0])

    def test_libvirt_is_away(self):
        self.libvirt.error = test_libvirt_jobs.Error(38)
        self.must_fail(errors.LIBVIRT_AWAY, 'qemu:///system', 'job', 'list')

    def test_libvirt_may_not_be_read(self):
        self.libvirt.error = test_libvirt_jobs.Error(45)
        self.must_fail(errors.NO_RIGHTS, 'qemu:///system', 'job', 'list')

    def test_uri_of_nova(self):
        asked = []
        self.libvirt.module.openReadOnly = lambda uri: (
            asked.append(uri) or self.libvirt)
        self.config.write_text(
            self.config.read_text() +
            '[libvirt]\nconnection_uri = qemu+unix:///other\n')
        self.rows()
        self.assertEqual({'qemu+unix:///other'}, set(asked))
