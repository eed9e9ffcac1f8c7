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

"""A libvirtd of a test's own."""

import atexit
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid

import fixtures
import libvirt

from tests.libvirt import waiting

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
# Seconds. It takes 0.1 s on an idle machine.
START_TIMEOUT = 60
STOP_TIMEOUT = 30

# Where folders live on when the test that made them has ended: each test is
# given a folder of its own for temporary files.
TEMPORARY = tempfile.gettempdir()

# A client that finds no session daemon would start the user's own.
os.environ['LIBVIRT_AUTOSTART'] = '0'


def quiet():
    """Let libvirt's errors be exceptions only, and not lines as well."""
    libvirt.registerErrorHandler(lambda context, error: None, None)


class Cache(object):
    """What libvirt finds out about QEMU, which takes it a second.

    Kept for all daemons of a test process.
    """
    _folder = None

    @classmethod
    def folder(cls):
        if cls._folder is None:
            cls._folder = tempfile.mkdtemp(
                prefix='libvirt-cache-', dir=TEMPORARY)
            atexit.register(shutil.rmtree, cls._folder, ignore_errors=True)
        return cls._folder


class Daemon(fixtures.Fixture):
    """A libvirtd in session mode, on a host of its own.

    It has no port: clients, other daemons and migrations come over sockets in
    its folder. The folder's path must be short, as that of any socket.

    :param hostname: of its host
    """

    def __init__(self, hostname):
        super(Daemon, self).__init__()
        self.hostname = hostname
        self._hosts = []

    def _setUp(self):
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in ('run', 'data', 'config/libvirt'):
            self.folder.joinpath(name).mkdir(mode=0o700, parents=True)
        config = self.folder / 'config' / 'libvirt'
        config.joinpath('libvirtd.conf').write_text(
            'host_uuid = "%s"\n' % uuid.uuid4())
        config.joinpath('qemu.conf').write_text(
            'stdio_handler = "file"\nsecurity_driver = "none"\n')
        self.addCleanup(self._end)
        self.start()

    @property
    def uri(self):
        """For clients on this machine."""
        return 'qemu+unix:///session?socket=%s' % (
            self.folder / 'run' / 'libvirt' / 'libvirt-sock')

    @property
    def migration_uri(self):
        """Where its QEMU waits for an incoming guest."""
        return 'unix://%s' % (self.folder / 'migration')

    def connect(self):
        """Open a connection.

        :returns: a ``libvirt.virConnect``
        :raises libvirt.libvirtError: when the daemon does not run
        """
        return libvirt.open(self.uri)

    def start(self):
        """Start libvirtd, and wait until it answers."""
        home = str(self.folder)
        env = dict(
            os.environ, HOME=home, XDG_RUNTIME_DIR=home + '/run',
            XDG_CONFIG_HOME=home + '/config', XDG_DATA_HOME=home + '/data',
            XDG_CACHE_HOME=Cache.folder())
        with open(home + '/log', 'ab') as log:
            self._hosts.append(subprocess.Popen(
                [sys.executable, '-m', 'tests.libvirt.host', self.hostname,
                 'libvirtd', '--config',
                 home + '/config/libvirt/libvirtd.conf'],
                cwd=str(TOP), env=env, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT))
        waiting.until(self._answers, START_TIMEOUT, 'libvirtd answers')

    def _answers(self):
        if self._hosts[-1].poll() is not None:
            raise RuntimeError('libvirtd ended: %s' % (
                self.folder / 'log').read_text())
        try:
            self.connect().close()
        except libvirt.libvirtError:
            return False
        return True

    def kill(self):
        """Kill libvirtd, as a crash would. Its guests go on."""
        pid = self._pid('libvirtd.pid')
        os.kill(pid, signal.SIGKILL)
        waiting.until(lambda: not os.path.exists('/proc/%d' % pid),
                      STOP_TIMEOUT, 'libvirtd is gone')

    def emulator(self, name):
        """The process ID of a guest's QEMU.

        :param name: of the domain
        """
        return self._pid('qemu/run/%s.pid' % name)

    def _pid(self, file):
        return int(self.folder.joinpath('run', 'libvirt', file).read_text())

    def _end(self):
        for host in self._hosts:
            host.terminate()
        for host in self._hosts:
            host.wait(STOP_TIMEOUT)
