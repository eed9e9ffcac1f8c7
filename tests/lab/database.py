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


"""The MariaDB of a lab.

SQLite would not do: with this many services some of their updates end in
"database is locked", and are lost.
"""

import contextlib
import signal

from tests.lab import namespaces
from tests.lab import processes
from tests.lab import settings as lab_settings
from tests.lab import waiting

#: Of the light form.
DATABASES = ('glance', 'nova', 'nova_api', 'nova_cell0', 'placement')
PORT = 3306


def url(name):
    """What an OpenStack service is told to connect to."""
    return 'mysql+pymysql://root@%s:%d/%s?charset=utf8' % (
        lab_settings.ADDRESSES[lab_settings.CONTROLLER], PORT, name)


class Database(object):
    """One server, without passwords, that only the lab can reach.

    :param settings: of the lab
    :param machine: Namespace in which it runs
    :param databases: names of those to make
    """

    def __init__(self, settings, machine, databases=DATABASES):
        self._machine = machine
        self._databases = databases
        self._data = settings.state / 'mariadb'
        self._socket = settings.state / 'mariadb.sock'
        self.process = processes.Process(
            'mariadb',
            ['mariadbd', '--no-defaults', '--user=root',
             '--datadir=%s' % self._data, '--socket=%s' % self._socket,
             '--pid-file=%s' % (settings.state / 'mariadb.pid'),
             '--bind-address=0.0.0.0', '--port=%d' % PORT,
             '--skip-grant-tables', '--skip-name-resolve',
             '--character-set-server=utf8mb3', '--max-connections=500',
             # a lab that loses power is made anew
             '--innodb-flush-log-at-trx-commit=0', '--skip-log-bin',
             '--innodb-buffer-pool-size=128M'],
            settings.state / 'pid', settings.logs, wrap=machine.enter,
            env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'})

    def up(self):
        """Make the files, start the server, make the databases."""
        # in memory: making tables waits for a disk more than for anything
        # else, and the file system ends with the namespace
        self._data.mkdir()
        self._machine.run('mount', '-t', 'tmpfs', 'mariadb', self._data)
        self._machine.run(
            'mariadb-install-db', '--no-defaults', '--user=root',
            '--datadir=%s' % self._data, '--skip-test-db',
            '--auth-root-authentication-method=normal', timeout=120)
        self.process.start()
        waiting.wait_until(self._answers, 'MariaDB answers; see %s' %
                           self.process.log, 60)
        self.execute(None, ''.join('create database %s;' % name
                                   for name in self._databases))

    def down(self):
        with contextlib.suppress(waiting.WaitTimeout):
            self.process.stop(timeout=10)
            return
        self.process.stop(signal.SIGKILL)

    def _answers(self):
        try:
            self.execute(None, 'select 1')
        except namespaces.CommandFailed:
            return False
        return True

    def _client(self, database):
        return ['mariadb', '--no-defaults', '--socket=%s' % self._socket,
                '--batch', '--raw'] + ([database] if database else [])

    def execute(self, database, statements):
        """Run SQL, and return what the client printed."""
        return namespaces.run(
            self._client(database) + ['--execute', statements], timeout=120)

    def copy(self, source, target):
        """Fill an empty database with what another one has."""
        path = self._data.with_name('copy.sql')
        self._dump(path, source)
        self.execute(target, 'source %s' % path)
        path.unlink()

    def dump(self, databases, path):
        """Write databases to a file of SQL."""
        unfinished = path.with_name(path.name + '.part')
        self._dump(unfinished, '--databases', *databases)
        unfinished.rename(path)

    def _dump(self, path, *argv):
        namespaces.run(
            ['mariadb-dump', '--no-defaults', '--socket=%s' % self._socket,
             '--result-file=%s' % path] + list(argv), timeout=120)

    def load(self, path):
        """Read what :meth:`dump` wrote."""
        self.execute(None, 'source %s' % path)

    def rows(self, database, query):
        """Run a query.

        :returns: a list of {column: text, or None where it is NULL}
        """
        lines = self.execute(database, query).splitlines()
        if not lines:
            return []
        names = lines[0].split('\t')
        return [{name: None if value == 'NULL' else value
                 for name, value in zip(names, line.split('\t'))}
                for line in lines[1:]]
