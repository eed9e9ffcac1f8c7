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

"""Runs programs with a time limit, and leaves nothing of them behind."""

import os
import signal
import subprocess
import time

#: Seconds between two looks at a program that runs.
_LOOK = 0.2
#: Seconds a program has to end by itself once it was told to.
_GRACE = 5


class TimedOut(Exception):
    """The program ran longer than it may."""


class Child(object):
    """A program at work.

    Its output goes to a file.

    :param argv: list of words
    :param log: path of the file for its output
    :param limit: seconds that it may run
    :param env: environment, or None for ours
    :param cwd: folder to run in, or None for ours
    :ivar code: its exit code, or None while it runs and when it was ended
    :ivar too_long: whether it was ended because of its limit
    :raises OSError: it cannot be started
    """

    def __init__(self, argv, log, limit, env=None, cwd=None):
        self.code = None
        self.too_long = False
        self.limit = limit
        self._ended = False
        self._end_at = time.monotonic() + limit
        with open(log, 'ab') as output:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, env=env, cwd=cwd,
                start_new_session=True)

    def runs(self):
        """Whether it is still at work; ends it when its time is over."""
        if self.code is not None or self.too_long:
            return False
        self.code = self._process.poll()
        if self.code is None and time.monotonic() >= self._end_at:
            self.too_long = True
            self.end()
        return self.code is None and not self.too_long

    def end(self):
        """End it with all that it started, whatever state it is in."""
        if self._ended:
            # the number of its group may be another's by now
            return
        self._ended = True
        if self._process.poll() is None and self._signal(signal.SIGTERM):
            try:
                self._process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                pass
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number):
        try:
            # its own session, so its group has its number
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            # gone; macOS says "not permitted" of a group of zombies
            return False
        return True


def wait(children, tick):
    """Wait until all programs have ended.

    Whatever ends the wait, Ctrl-C among it, they and their children are gone
    when this returns.

    :param children: list of Child
    :param tick: called several times a second
    """
    try:
        running = list(children)
        while running:
            tick()
            time.sleep(_LOOK)
            running = [child for child in running if child.runs()]
    finally:
        for child in children:
            child.end()


def run(argv, log, limit, tick, cwd=None):
    """Run a program to its end and return its exit code.

    For the arguments see Child and wait.

    :raises TimedOut: it ran longer than limit
    :raises OSError: it cannot be started
    """
    child = Child(argv, log, limit, cwd=cwd)
    wait([child], tick)
    if child.too_long:
        raise TimedOut('ran longer than %d s' % limit)
    return child.code


def last_lines(path, count):
    """Return the last lines of a file, or [] when it cannot be read.

    :param count: how many, or None for all
    """
    try:
        with open(path, encoding='utf-8', errors='replace') as stream:
            lines = stream.read().splitlines()
    except OSError:
        return []
    return lines if count is None else lines[-count:]
