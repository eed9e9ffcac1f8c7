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

import io

import fixtures
import testtools

from tests.replay import progress


class _Stream(io.StringIO):

    def __init__(self, tty):
        super().__init__()
        self._tty = tty

    def isatty(self):
        return self._tty


class ProgressTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 100.0
        self.useFixture(fixtures.MonkeyPatch(
            'tests.replay.progress.time.monotonic', lambda: self.now))

    def _after(self, told, seconds):
        self.now += seconds
        told.tick()

    def test_log_hears_of_begin_and_end_and_now_and_then(self):
        stream = _Stream(tty=False)
        told = progress.Progress(stream, {})
        told.begin('S1')
        for _ in range(65):
            self._after(told, 1)
        told.end('SAFE')
        self.assertEqual(['S1 ...', 'S1 ... 30 s', 'S1 ... 60 s',
                          'S1: SAFE  (65 s)'],
                         stream.getvalue().splitlines())

    def test_terminal_has_one_line_that_moves(self):
        stream = _Stream(tty=True)
        told = progress.Progress(stream, {})
        told.begin('S1')
        self._after(told, 3)
        told.end('SAFE')
        text = stream.getvalue()
        self.assertIn('S1  3 s', text)
        self.assertEqual(1, text.count('\n'))
        self.assertTrue(text.endswith('\r\x1b[KS1: SAFE  (3 s)\n'))

    def test_line_that_moves_does_not_wrap(self):
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', '30'))
        stream = _Stream(tty=True)
        progress.Progress(stream, {}).begin('S' * 100)
        for line in stream.getvalue().split('\r\x1b[K'):
            self.assertTrue(len(line) < 30, line)

    def test_dumb_terminal_is_a_log(self):
        stream = _Stream(tty=True)
        progress.Progress(stream, {'TERM': 'dumb'}).begin('S1')
        self.assertEqual('S1 ...\n', stream.getvalue())

    def test_stop_leaves_a_clean_line(self):
        stream = _Stream(tty=True)
        told = progress.Progress(stream, {})
        told.begin('S1')
        told.stop()
        self.assertTrue(stream.getvalue().endswith('\r\x1b[K'))

    def test_change(self):
        stream = _Stream(tty=False)
        told = progress.Progress(stream, {})
        told.begin('preparing')
        self.now += 4
        told.change('installing')
        told.end('ready')
        self.assertEqual(['preparing ...', 'installing ...',
                          'installing: ready  (4 s)'],
                         stream.getvalue().splitlines())

    def test_nobody_listens(self):
        stream = _Stream(tty=True)
        stream.write = self._closed
        told = progress.Progress(stream, {})
        told.begin('S1')
        told.end('SAFE')

    def _closed(self, text):
        raise BrokenPipeError()
