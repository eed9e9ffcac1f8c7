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


"""A machine that is a network, a mount and a UTS namespace."""

import contextlib
import ctypes
import os
import pathlib
import signal
import socket
import subprocess

from tests.lab import processes
from tests.lab import waiting

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _enter_network(path):
    # os.setns is there from Python 3.12 only
    with open(path) as namespace:
        if _libc.setns(namespace.fileno(), _CLONE_NEWNET):
            error = ctypes.get_errno()
            raise OSError(error, 'setns: ' + os.strerror(error), str(path))


class Namespace(object):
    """Namespaces that live as long as one process that sleeps in them.

    There is no PID namespace: every process of the lab can be seen, traced
    and killed from outside.

    :param name: also the host name inside
    :param pids: folder for the pid file
    :param logs: folder for the log
    """

    def __init__(self, name, pids, logs):
        self.name = name
        self._keeper = processes.Process(
            'namespace-' + name, ['sleep', 'infinity'], pids, logs,
            wrap=['unshare', '--mount', '--uts', '--net',
                  '--propagation', 'private', '--'])

    @property
    def exists(self):
        return self._keeper.alive

    @property
    def pid(self):
        """Process id of the process that keeps the namespaces."""
        return self._keeper.pid

    def create(self):
        """Make the namespaces; loopback is their only interface."""
        self._keeper.start()
        waiting.wait_until(self._entered, 'namespaces of %s' % self.name, 10,
                           0.01)
        self.run('hostname', self.name)
        self.run('ip', 'link', 'set', 'lo', 'up')

    def _entered(self):
        comm = pathlib.Path('/proc/%d/comm' % self.pid).read_text()
        return comm.strip() == 'sleep'

    def enter(self):
        """The beginning of a command line that runs the rest inside."""
        return ['nsenter', '--target', str(self.pid), '--mount', '--uts',
                '--net', '--']

    def run(self, *argv, **options):
        """Run a command inside, and return what it printed.

        :param argv: the command
        :param timeout: seconds (30)
        :param env: environment variables to add
        :raises subprocess.CalledProcessError: it failed; ``stderr`` says why
        :raises subprocess.TimeoutExpired: it did not end in time
        """
        return run(self.enter() + [str(word) for word in argv], **options)

    def mount(self, source, target):
        """Mount a file or folder over another one, for this machine only."""
        self.run('mount', '--bind', source, target)

    @contextlib.contextmanager
    def network(self):
        """Sockets that this thread makes are made inside."""
        home = '/proc/thread-self/ns/net'
        with open(home) as outside:
            _enter_network('/proc/%d/ns/net' % self.pid)
            try:
                yield
            finally:
                _enter_network('/proc/self/fd/%d' % outside.fileno())

    def listens(self, port, address='127.0.0.1'):
        """Tell whether something accepts TCP connections inside."""
        with self.network():
            probe = socket.socket()
        with contextlib.closing(probe):
            probe.settimeout(2)
            return probe.connect_ex((address, port)) == 0

    def processes(self):
        """Process ids of all that runs inside, without the keeper."""
        inside = os.stat('/proc/%d/ns/net' % self.pid).st_ino
        found = []
        for entry in os.listdir('/proc'):
            if not entry.isdigit() or int(entry) == self.pid:
                continue
            with contextlib.suppress(OSError):
                if os.stat('/proc/%s/ns/net' % entry).st_ino == inside:
                    found.append(int(entry))
        return found

    def remove(self):
        """Kill what runs inside; mounts and interfaces go with it."""
        if not self.exists:
            return
        waiting.wait_until(self._killed, lambda: '%s is empty; there are %s'
                           % (self.name, self.processes()), 30)
        self._keeper.stop(signal.SIGKILL)

    def _killed(self):
        pids = self.processes()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            processes.reap(pid)
        return not pids


def run(argv, timeout=30, env=None):
    """Run a command, and return what it printed.

    :raises subprocess.CalledProcessError: it failed; ``stderr`` says why
    :raises subprocess.TimeoutExpired: it did not end in time
    """
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True, timeout=timeout,
        env=dict(os.environ, **(env or {})))
    if done.returncode:
        raise CommandFailed(done.returncode, argv, done.stdout, done.stderr)
    return done.stdout


class CommandFailed(subprocess.CalledProcessError):
    """A command failed; its text says what the command said."""

    def __str__(self):
        return '%s\n%s' % (super(CommandFailed, self).__str__(),
                           (self.stderr or self.stdout).strip()[-2000:])
