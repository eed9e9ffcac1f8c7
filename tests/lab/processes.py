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


"""Processes that the lab starts, and the only ones that it stops."""

import contextlib
import os
import pathlib
import signal
import subprocess

from tests.lab import waiting


def status(pid):
    """State letter and start time of a process.

    :returns: for example ('S', '4711'), the time in clock ticks since the
        machine started; or None when there is no such process
    """
    try:
        text = pathlib.Path('/proc/%d/stat' % pid).read_text()
    except (OSError, ValueError):
        return None
    # the name is in parentheses and may hold blanks
    fields = text[text.rindex(')') + 2:].split()
    return fields[0], fields[19]


def reap(pid):
    """Take note of the end of a process if it is a child of this one."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


class Process(object):
    """A process with a pid file, so that another program can stop it.

    The start time is kept beside the pid: a pid that has been given to
    another process since is not ours.

    :param name: of the pid file and the log
    :param argv: the command
    :param pids: folder for the pid file
    :param logs: folder for the log
    :param wrap: a command that executes the rest of its command line in the
        same process; or a function that returns one
    :param env: environment variables to add
    """

    def __init__(self, name, argv, pids, logs, wrap=(), env=None):
        self.name = name
        self._argv = [str(word) for word in argv]
        self._wrap = wrap
        self._env = env or {}
        self._pid_file = pathlib.Path(pids) / name
        self._logged = 0
        self.log = pathlib.Path(logs) / (name + '.log')

    @property
    def pid(self):
        """Process id, or None when it was not started or was stopped."""
        known = self._known()
        return known and known[0]

    def _known(self):
        try:
            pid, started = self._pid_file.read_text().split()
        except (OSError, ValueError):
            return None
        return int(pid), started

    @property
    def alive(self):
        known = self._known()
        if known is None:
            return False
        pid, started = known
        found = status(pid)
        if found is None or found[1] != started:
            return False
        if found[0] in 'ZX':
            reap(pid)
            return False
        return True

    @property
    def frozen(self):
        """Whether SIGSTOP holds it."""
        return self.alive and status(self.pid)[0] == 'T'

    def start(self):
        """Start it as the leader of a session of its own.

        :returns: its process id
        """
        wrap = self._wrap() if callable(self._wrap) else list(self._wrap)
        with self.log.open('ab') as log:
            self._logged = log.tell()
            child = subprocess.Popen(
                wrap + self._argv, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True, cwd='/',
                env=dict(os.environ, **self._env))
        self._pid_file.write_text('%d %s' % (child.pid,
                                             status(child.pid)[1]))
        # it is waited for by its pid, also by programs that come later
        child.returncode = 0
        return child.pid

    def has_logged(self, text):
        """Whether it has written something to its log since its start.

        :param text: bytes
        """
        with self.log.open('rb') as log:
            log.seek(self._logged)
            return text in log.read()

    def kill(self, signum):
        """Send a signal.

        :raises ProcessLookupError: it is not there
        """
        if not self.alive:
            raise ProcessLookupError('%s does not run; see %s' % (
                self.name, self.log))
        os.kill(self.pid, signum)

    def wait(self, timeout):
        """Wait for its end.

        :param timeout: seconds
        :raises waiting.WaitTimeout: it is still there
        """
        waiting.wait_until(lambda: not self.alive, '%s (pid %s) ends' % (
            self.name, self.pid), timeout, 0.02)
        with contextlib.suppress(FileNotFoundError):
            self._pid_file.unlink()

    def stop(self, signum=signal.SIGTERM, timeout=30):
        """Send a signal if it runs, and wait for its end."""
        if self.alive:
            self.kill(signum)
        self.wait(timeout)
