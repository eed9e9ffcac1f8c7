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

"""libvirt or QEMU is away, or hangs, while a block job is aborted."""

import os
import signal
import threading
import time

import libvirt

from nova_migration_guard import libvirt_jobs
from tests.libvirt import base
from tests.libvirt import waiting

# Seconds that an abort gets which cannot succeed, and by how much it may be
# late on a machine that is busy.
SHORT = 2
LATE = 5


class TroubleTestCase(base.TestCase):

    def setUp(self):
        super(TroubleTestCase, self).setUp()
        self.guest = self.start_guest()
        self.target = str(self.folder / 'copy')
        self.leave_job(self.guest, 'copy', target=self.target)
        self.found = self.observe(self.guest).block_jobs
        name = self.guest.domain.name()
        self.emulator = self.host.emulator(name)

    def stop_emulator(self):
        """Let QEMU hang until the test lets it go on."""
        os.kill(self.emulator, signal.SIGSTOP)

    def continue_emulator(self):
        os.kill(self.emulator, signal.SIGCONT)

    def abort_in_vain(self):
        """Abort the job, which must end in time and promise nothing."""
        begun = time.monotonic()
        seen = self.jobs.abort_block_jobs(self.guest.uuid, self.found, SHORT)
        self.assertLess(time.monotonic() - begun, SHORT + LATE)
        self.assertIn(seen.block_jobs, (None, self.found))
        self.assertNotEqual('', seen.trouble)

    def seen_at_last(self):
        """What the guard sees as soon as it sees everything."""
        return waiting.until(self.whole_observation, base.TIMEOUT,
                             'libvirt tells everything')

    def whole_observation(self):
        seen = self.jobs.observe(self.guest.uuid, SHORT)
        return None if seen.trouble else seen

    def test_qemu_hangs(self):
        self.stop_emulator()
        self.abort_in_vain()
        # the first call still waits: one that also waited would be no help
        self.abort_in_vain()
        self.continue_emulator()
        # the first abort had its effect, only late
        self.assertEqual((), self.seen_at_last().block_jobs)
        self.define_again(self.guest)
        self.assert_usable(self.guest)

    def test_qemu_hangs_while_it_is_observed(self):
        """State, disks and persistence are known at once all the same."""
        self.stop_emulator()
        begun = time.monotonic()
        seen = self.jobs.observe(self.guest.uuid, SHORT)
        self.assertLess(time.monotonic() - begun, SHORT + LATE)
        self.assertEqual(libvirt_jobs.State.RUNNING, seen.state)
        self.assertTrue(seen.persistent)
        self.assertEqual(self.target, seen.disks[0].mirror)
        self.assertIsNone(seen.block_jobs)
        self.continue_emulator()
        self.assertEqual(self.found, self.seen_at_last().block_jobs)

    def test_another_guest_while_one_hangs(self):
        other = self.start_guest('vdb')
        self.leave_job(other, 'pull', 'vdb')
        self.stop_emulator()
        self.abort_in_vain()
        self.abort(other, self.observe(other).block_jobs)
        self.continue_emulator()

    def test_libvirtd_killed_in_mid_abort(self):
        self.stop_emulator()
        result = []
        abort = threading.Thread(target=lambda: result.append(
            self.jobs.abort_block_jobs(self.guest.uuid, self.found,
                                       2 * SHORT)))
        abort.start()
        time.sleep(SHORT / 2)
        self.host.kill()
        abort.join(2 * SHORT + LATE)
        self.assertEqual(1, len(result))
        self.assertIsNone(result[0].present)
        self.assertIsNone(result[0].block_jobs)
        self.assertNotEqual('', result[0].trouble)
        self.continue_emulator()
        self.host.start()
        # QEMU may or may not have got the abort before libvirtd was gone
        seen = self.seen_at_last()
        self.assertTrue(seen.present)
        self.abort(self.guest, seen.block_jobs)
        self.define_again(self.guest)
        self.assert_usable(self.guest)

    def test_libvirtd_restarted_while_the_job_runs(self):
        self.host.kill()
        seen = self.jobs.observe(self.guest.uuid, SHORT)
        self.assertIsNone(seen.present)
        self.assertNotEqual('', seen.trouble)
        self.host.start()
        seen = self.seen_at_last()
        self.assertEqual(self.found, seen.block_jobs)
        self.abort(self.guest, seen.block_jobs)
        self.define_again(self.guest)
        self.assert_usable(self.guest)

    def test_guest_that_is_gone(self):
        self.guest.domain.undefine()
        self.guest.destroy()
        seen = self.jobs.abort_block_jobs(self.guest.uuid, self.found, SHORT)
        self.assertEqual(libvirt_jobs.ABSENT, seen)

    def test_guest_that_has_no_agent(self):
        self.assertRaises(libvirt.libvirtError, self.jobs.thaw,
                          self.guest.uuid, base.TIMEOUT)

    def test_definition_that_libvirt_refuses(self):
        self.assertRaises(libvirt.libvirtError, self.jobs.define,
                          self.guest.uuid, '<domain/>', base.TIMEOUT)
