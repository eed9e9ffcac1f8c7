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

"""A block job that ended while nobody looked shows in the disk's chain."""

import libvirt

from tests.libvirt import base
from tests.libvirt import client
from tests.libvirt import images


class EndedJobsTestCase(base.TestCase):

    def assert_ended(self, started, *chain):
        """No job is left, and the disk consists of these images."""
        seen = self.wait_for_no_job(started)
        self.assertEqual((), seen.block_jobs)
        self.assertIsNone(seen.disks[0].mirror)
        self.assertEqual(tuple(map(str, chain)), seen.disks[0].chain)

    def finish_job(self, started):
        """Let a job that is left behind run to its end, at full speed."""
        started.domain.blockJobSetSpeed('vda', 0, 0)

    def pivot(self, started):
        """Switch over to a copy, as another client may have done."""
        started.domain.blockJobAbort(
            'vda', libvirt.VIR_DOMAIN_BLOCK_JOB_ABORT_PIVOT)

    def test_copy_that_was_pivoted(self):
        for persistent in (True, False):
            started = self.start_guest(persistent=persistent)
            target = self.folder / ('copy-%s' % persistent)
            self.leave_ready_job(started, 'copy', target=str(target))
            started.write('vda', images.MIB, 0x5a, 65536)
            self.pivot(started)
            self.assert_ended(started, target)
            started.write('vda', images.MIB, 0xa5, 65536)
            self.define_again(started)
            started.destroy()
            images.check(target)
            self.assertEqual(started.disks['vda'].digest,
                             images.digest(target))
            started.domain.undefine()

    def test_pivot_after_the_domain_was_defined_again(self):
        """The definition follows the guest to the copy."""
        started = self.start_guest(persistent=False)
        target = self.folder / 'copy'
        self.leave_ready_job(started, 'copy', target=str(target))
        self.define_again(started)
        self.pivot(started)
        self.assert_ended(started, target)
        self.assertEqual([('vda', str(target))], self.sources(
            self.jobs.xml(started.uuid, base.TIMEOUT, inactive=True)))

    def test_live_snapshot_that_was_pivoted(self):
        """The guest goes on in the delta, which nobody may remove."""
        started = self.start_guest()
        disk = started.disks['vda']
        target = images.create(self.folder / 'delta', disk.middle, 'qcow2')
        self.leave_ready_job(started, 'live_snapshot', target=str(target))
        self.pivot(started)
        self.assert_ended(started, target, disk.middle, disk.base)
        self.define_again(started)
        self.assert_usable(started)

    def test_pull_that_ended(self):
        started = self.start_guest()
        self.leave_job(started, 'pull')
        self.finish_job(started)
        self.assert_ended(started, started.disks['vda'].top)
        self.define_again(started)
        started.destroy()
        self.assertEqual(started.disks['vda'].digest,
                         images.digest(started.disks['vda'].top))

    def test_commit_that_ended(self):
        started = self.start_guest()
        disk = started.disks['vda']
        self.leave_job(started, 'commit', top=str(disk.middle),
                       base=str(disk.base))
        self.finish_job(started)
        self.assert_ended(started, disk.top, disk.base)
        self.define_again(started)
        self.assert_usable(started)

    def test_active_commit_that_was_pivoted(self):
        started = self.start_guest()
        disk = started.disks['vda']
        self.leave_ready_job(started, 'commit', top=str(disk.top),
                             base=str(disk.middle), active=True)
        self.pivot(started)
        self.assert_ended(started, disk.middle, disk.base)
        self.define_again(started)
        started.destroy()
        self.assertEqual(disk.digest, images.digest(disk.middle))

    def test_backup_that_ended(self):
        started = self.start_guest(size=client.BACKUP_SIZE)
        disk = started.disks['vda']
        target = self.folder / 'backup'
        self.leave_job(started, 'backup', target=str(target))
        self.finish_job(started)
        self.assert_ended(started, *disk.chain)
        self.assertFalse(self.observe(started).job.active)
        self.assertEqual(disk.digest, images.digest(target))

    def test_abort_of_a_job_that_ended_before(self):
        """It is gone, which is all that an abort is to see to."""
        started = self.start_guest()
        self.leave_job(started, 'pull')
        seen = self.observe(started)
        self.finish_job(started)
        self.wait_for_no_job(started)
        self.abort(started, seen.block_jobs)

    def test_size_after_a_pivot(self):
        """A volume that was swapped for a larger one is made to look so."""
        started = self.start_guest()
        target = self.folder / 'copy'
        self.leave_ready_job(started, 'copy', target=str(target))
        self.pivot(started)
        self.jobs.resize(started.uuid, 'vda', 2 * images.SIZE, base.TIMEOUT)
        self.assertEqual(2 * images.SIZE,
                         started.domain.blockInfo('vda')[0])
