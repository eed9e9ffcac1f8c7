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

import os
import signal
import sys
import time

import fixtures
import testtools

from tests.replay import process

# Starts a child that ignores to be told, and tells its number.
_STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, '-c', '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(60)
'''])
print(child.pid, flush=True)
time.sleep(60)
"""


def _alive(pid):
    """Whether a process runs; what only waits for its parent does not."""
    try:
        with open('/proc/%d/stat' % pid) as stream:
            return stream.read().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


class RunTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.TempDir()).join('log')
        self.useFixture(fixtures.MockPatchObject(process, '_GRACE', 0.3))
        self.ticks = []

    def _run(self, code, limit=30):
        return process.run([sys.executable, '-c', code], self.log, limit,
                           lambda: self.ticks.append(1))

    def _child_is_gone(self):
        pid = int(process.last_lines(self.log, 1)[0])
        # init has to collect it first
        for _ in range(50):
            if not _alive(pid):
                return True
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        return False

    def test_exit_code_and_output(self):
        code = self._run('import sys; print("out"); sys.exit("err")')
        self.assertEqual(1, code)
        self.assertEqual(['out', 'err'],
                         sorted(process.last_lines(self.log, 5))[::-1])

    def test_tick(self):
        self._run('import time; time.sleep(0.7)')
        self.assertTrue(self.ticks)

    def test_time_limit_ends_it_with_its_children(self):
        exc = self.assertRaises(process.TimedOut, self._run, _STUBBORN, 2)
        self.assertIn('2 s', str(exc))
        self.assertTrue(self._child_is_gone())

    def test_each_has_a_limit_of_its_own(self):
        children = [process.Child(['sleep', '30'], self.log, 0.5),
                    process.Child(['sleep', '1'], self.log, 30)]
        process.wait(children, lambda: None)
        self.assertEqual([(True, None), (False, 0)],
                         [(child.too_long, child.code)
                          for child in children])

    def test_interruption_ends_it_with_its_children(self):
        def tick():
            if process.last_lines(self.log, 1):
                raise KeyboardInterrupt()

        self.assertRaises(KeyboardInterrupt, process.run,
                          [sys.executable, '-c', _STUBBORN], self.log, 30,
                          tick)
        self.assertTrue(self._child_is_gone())

    def test_children_of_one_that_ended_are_ended(self):
        code = _STUBBORN.replace('time.sleep(60)\n"', '').rsplit(
            'time.sleep', 1)[0]
        self.assertEqual(0, self._run(code))
        self.assertTrue(self._child_is_gone())

    def test_no_such_program(self):
        self.assertRaises(OSError, process.run, ['/no/such/program'],
                          self.log, 1, lambda: None)


class LastLinesTestCase(testtools.TestCase):

    def test_last_lines(self):
        path = self.useFixture(fixtures.TempDir()).join('log')
        with open(path, 'wb') as stream:
            stream.write(b'one\ntwo\n\xff three')
        self.assertEqual(['two', '\ufffd three'],
                         process.last_lines(path, 2))
        self.assertEqual(3, len(process.last_lines(path, None)))
        self.assertEqual([], process.last_lines(path + '.gone', 2))
