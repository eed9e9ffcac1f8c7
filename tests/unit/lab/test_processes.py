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


"""Processes by their pid files; needs no lab."""

import os
import pathlib
import signal

import fixtures
import testtools

from tests.lab import processes
from tests.lab import waiting


class ProcessTestCase(testtools.TestCase):

    def setUp(self):
        super(ProcessTestCase, self).setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def process(self, *argv):
        process = processes.Process('p', argv, self.folder, self.folder)
        self.addCleanup(lambda: process.stop(signal.SIGKILL))
        return process

    def test_start_and_stop(self):
        process = self.process('sleep', '60')
        self.assertFalse(process.alive)
        pid = process.start()
        self.assertTrue(process.alive)
        self.assertEqual(pid, process.pid)
        self.assertEqual(pid, os.getsid(pid))
        process.stop()
        self.assertFalse(process.alive)
        self.assertIsNone(process.pid)

    def test_what_it_has_logged_since_its_start(self):
        process = self.process('sh', '-c', 'echo begin; exec sleep 60')
        process.start()
        waiting.wait_until(lambda: process.has_logged(b'begin'), 'begins', 10)
        process.stop(signal.SIGKILL)
        silent = self.process('sleep', '60')
        silent.start()
        self.assertFalse(silent.has_logged(b'begin'))

    def test_another_program_sees_it(self):
        process = self.process('sleep', '60')
        process.start()
        other = processes.Process('p', [], self.folder, self.folder)
        self.assertTrue(other.alive)
        other.stop(signal.SIGKILL)
        self.assertFalse(process.alive)

    def test_pid_of_another_process(self):
        """A pid that was given to another process is not ours."""
        process = self.process('sleep', '60')
        (self.folder / 'p').write_text('%d 1' % os.getpid())
        self.assertFalse(process.alive)
        self.assertRaises(ProcessLookupError, process.kill, signal.SIGTERM)

    def test_process_that_ended(self):
        process = self.process('true')
        process.start()
        waiting.wait_until(lambda: not process.alive, 'ends', 10)

    def test_process_that_does_not_end(self):
        process = self.process('sh', '-c', 'trap "" TERM; echo; sleep 60')
        process.start()
        waiting.wait_until(process.log.read_text, 'ignores SIGTERM', 10)
        self.assertRaises(waiting.WaitTimeout, process.stop, signal.SIGTERM,
                          0.2)
        self.assertTrue(process.alive)
