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

"""A block job whose client was killed in mid way is aborted without a trace.

After each of them the guest's disk reads as before, what the guest has
written meanwhile included; its domain is defined; and libvirt lets it be
snapshotted and migrated.
"""

from nova_migration_guard import libvirt_jobs
from tests.libvirt import base
from tests.libvirt import client
from tests.libvirt import images

Type = libvirt_jobs.BlockJobType
Operation = libvirt_jobs.Operation


class InterruptedJobsTestCase(base.TestCase):

    def interrupted(self, started, job_type, target=None, persistent=True,
                    operation=Operation.UNKNOWN):
        """Look at a job without a client, abort it, and use the guest.

        :param started: the guest
        :param job_type: what the job must be seen as
        :param target: what it must be seen to write to
        :param persistent: whether the domain must be seen to be
        :param operation: of the domain job that must be seen
        """
        disk = started.disks['vda']
        seen = self.observe(started)
        self.assertEqual(
            (libvirt_jobs.BlockJob('vda', job_type, target),),
            seen.block_jobs)
        self.assertEqual(disk.chain, seen.disks[0].chain)
        self.assertEqual(target, seen.disks[0].mirror)
        self.assertEqual(persistent, seen.persistent)
        self.assertEqual(operation, seen.job.operation)
        self.assertEqual(operation is not Operation.UNKNOWN, seen.job.active)
        started.write('vda', images.SIZE - images.MIB, 0x5a, 65536)

        seen = self.abort(started, seen.block_jobs)

        self.assertEqual(disk.chain, seen.disks[0].chain)
        self.assertIsNone(seen.disks[0].mirror)
        self.define_again(started)
        self.assert_usable(started)

    def test_copy_of_a_persistent_domain(self):
        started = self.start_guest()
        target = str(self.folder / 'copy')
        self.leave_job(started, 'copy', target=target)
        self.interrupted(started, Type.COPY, target)

    def test_copy_of_a_transient_domain(self):
        started = self.start_guest(persistent=False)
        target = str(self.folder / 'copy')
        self.leave_job(started, 'copy', target=target)
        self.interrupted(started, Type.COPY, target, persistent=False)

    def test_live_snapshot(self):
        started = self.start_guest()
        target = images.create(self.folder / 'delta',
                               started.disks['vda'].middle, 'qcow2')
        self.leave_job(started, 'live_snapshot', target=str(target))
        self.interrupted(started, Type.COPY, str(target), persistent=False)

    def test_domain_defined_while_the_job_runs(self):
        """What is defined then stays right when the job is aborted."""
        started = self.start_guest()
        target = images.create(self.folder / 'delta',
                               started.disks['vda'].middle, 'qcow2')
        self.leave_job(started, 'live_snapshot', target=str(target))
        self.define_again(started)
        self.interrupted(started, Type.COPY, str(target))

    def test_pull(self):
        started = self.start_guest()
        self.leave_job(started, 'pull')
        self.interrupted(started, Type.PULL)

    def test_commit_of_an_inactive_layer(self):
        started = self.start_guest()
        disk = started.disks['vda']
        self.leave_job(started, 'commit', top=str(disk.middle),
                       base=str(disk.base))
        self.interrupted(started, Type.COMMIT)

    def test_active_commit(self):
        started = self.start_guest()
        disk = started.disks['vda']
        self.leave_job(started, 'commit', top=str(disk.top),
                       base=str(disk.middle), active=True)
        self.interrupted(started, Type.ACTIVE_COMMIT, str(disk.middle))

    def test_active_commit_that_is_ready(self):
        started = self.start_guest()
        disk = started.disks['vda']
        self.leave_ready_job(started, 'commit', top=str(disk.top),
                             base=str(disk.middle), active=True)
        self.interrupted(started, Type.ACTIVE_COMMIT, str(disk.middle))

    def test_copy_that_is_ready(self):
        started = self.start_guest()
        target = str(self.folder / 'copy')
        self.leave_ready_job(started, 'copy', target=target)
        self.interrupted(started, Type.COPY, target)

    def test_backup(self):
        started = self.start_guest(size=client.BACKUP_SIZE)
        self.leave_job(started, 'backup', target=str(self.folder / 'backup'))
        self.interrupted(started, Type.BACKUP, operation=Operation.BACKUP)

    def test_two_disks_with_jobs_at_once(self):
        started = self.start_guest('vda', 'vdb')
        target = str(self.folder / 'copy')
        self.leave_job(started, 'pull', 'vda')
        self.leave_job(started, 'copy', 'vdb', target=target)
        seen = self.observe(started)
        self.assertEqual((libvirt_jobs.BlockJob('vda', Type.PULL),
                          libvirt_jobs.BlockJob('vdb', Type.COPY, target)),
                         seen.block_jobs)
        self.abort(started, seen.block_jobs)
        self.define_again(started)
        self.assert_usable(started)

    def test_one_of_two_jobs_is_left_alone(self):
        started = self.start_guest('vda', 'vdb')
        self.leave_job(started, 'pull', 'vda')
        self.leave_job(started, 'pull', 'vdb')
        ours, foreign = self.observe(started).block_jobs
        seen = self.jobs.abort_block_jobs(started.uuid, [ours], base.TIMEOUT)
        self.assertEqual((foreign,), seen.block_jobs)

    def test_job_on_a_disk_that_somebody_attached(self):
        """A disk that is in no record of Nova's has a name all the same."""
        started = self.start_guest('vda', 'sdx')
        target = str(self.folder / 'copy')
        self.leave_job(started, 'copy', 'sdx', target=target)
        seen = self.observe(started)
        self.assertEqual((libvirt_jobs.BlockJob('sdx', Type.COPY, target),),
                         seen.block_jobs)
        self.assertEqual([('sdx', None), ('vda', None)],
                         sorted((disk.dev, disk.serial)
                                for disk in seen.disks))
        self.abort(started, seen.block_jobs)
        self.assert_usable(started)
