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

"""Tells on stderr what goes on, so that stdout holds results alone."""

import os
import shutil
import time

_FRAMES = '|/-\\'
#: Seconds after which a log (no terminal) hears again of the same step.
_REMIND = 30
_ERASE = '\r\x1b[K'


class Progress(object):
    """One line a step; on a terminal the line of the step at work moves.

    :param stream: usually sys.stderr
    :param environ: environment variables, or None for ours
    """

    def __init__(self, stream, environ=None):
        environ = os.environ if environ is None else environ
        self._stream = stream
        self._moves = stream.isatty() and environ.get('TERM') != 'dumb'
        self._doing = None
        self._began = 0.0
        self._reminded = 0.0
        self._frame = 0

    def say(self, text):
        """Write a line above the one that moves."""
        self._write((_ERASE if self._moves else '') + text + '\n')

    def begin(self, text):
        """Begin a step."""
        self._doing = text
        self._began = self._reminded = time.monotonic()
        if not self._moves:
            self._write(text + ' ...\n')
        self.tick()

    def change(self, text):
        """Say what the step at work does now; its time goes on."""
        self._doing = text
        if not self._moves:
            self._write(text + ' ...\n')

    def tick(self):
        """Show that the step is still at work; may be called often."""
        now = time.monotonic()
        gone = int(now - self._began)
        if self._moves:
            self._frame = (self._frame + 1) % len(_FRAMES)
            line = '%s %s  %d s' % (_FRAMES[self._frame], self._doing, gone)
            # a line that wraps could not be erased
            room = shutil.get_terminal_size().columns - 1
            self._write(_ERASE + line[:room])
        elif now - self._reminded >= _REMIND:
            self._reminded = now
            self._write('%s ... %d s\n' % (self._doing, gone))

    def end(self, outcome):
        """End the step; its line stays, with how it ended and how long."""
        gone = time.monotonic() - self._began
        self.say('%s: %s  (%.0f s)' % (self._doing, outcome, gone))
        self._doing = None

    def stop(self):
        """Leave the terminal with a clean line, whatever was at work."""
        if self._doing is not None and self._moves:
            self._write(_ERASE)
        self._doing = None

    def _write(self, text):
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # nobody listens any more; the results are what matters
            self._moves = False
