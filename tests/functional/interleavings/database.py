# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Nova's database: where a call of it can be held, and copies of it."""

import functools
import sqlite3
import threading

import fixtures
from oslo_db.sqlalchemy import enginefacade

from nova import context as nova_context

from tests.functional import releases

#: The tables that an audit takes its picture from, by their functions' names.
_TABLES = ('instance_', 'migration_')

#: Functions of those names that have to do with other tables.
_OTHERS = ('instance_action', 'instance_fault', 'instance_info_cache',
           'instance_metadata', 'instance_system_metadata', 'instance_tag',
           'instance_group', 'instance_mapping', 'instance_floating')


def _is_read(name):
    return '_get' in name


class Calls(fixtures.Fixture):
    """Every read and write of instances and migrations goes through here.

    :param read: called with (name, call) instead of each read; it returns
        what ``call(database)`` returns. ``database`` is a copy to read from,
        or None for the real one.
    :param write: called with (name, call) instead of each write; it returns
        what ``call()`` returns

    A function that calls others is one call. In MySQL, as Nova uses it, it is
    one transaction with one consistent view.
    """

    def __init__(self, read, write):
        super(Calls, self).__init__()
        self._read = read
        self._write = write
        self._inside = set()

    def _setUp(self):
        module = releases.database_api()
        for name in dir(module):
            if name.startswith(_TABLES) and not name.startswith(_OTHERS):
                self._wrap(module, name)

    def _wrap(self, module, name):
        original = getattr(module, name)

        @functools.wraps(original)
        def function(*args, **kwargs):
            me = threading.get_ident()
            if me in self._inside:
                return original(*args, **kwargs)

            def call(database=None):
                self._inside.add(me)
                try:
                    with _reading_from(args[0], database):
                        return original(*args, **kwargs)
                finally:
                    self._inside.discard(me)
            if _is_read(name):
                return self._read(name, call)
            return self._write(name, call)
        self.useFixture(fixtures.MockPatchObject(module, name, function))

    def unseen(self, function):
        """Call a function whose reads and writes are no calls."""
        me = threading.get_ident()
        self._inside.add(me)
        try:
            return function()
        finally:
            self._inside.discard(me)


class _reading_from(object):
    """While it is entered a context's calls go to a copy of the database."""

    def __init__(self, context, database):
        self._context = context
        self._database = database

    def __enter__(self):
        if self._database is not None:
            self._before = self._context.db_connection
            self._context.db_connection = self._database.manager()

    def __exit__(self, *exc):
        if self._database is not None:
            self._context.db_connection = self._before


def _raw(engine):
    connection = engine.raw_connection()
    # the driver's own connection; the name is SQLAlchemy's, by release
    return connection, (getattr(connection, 'driver_connection', None) or
                        connection.connection)


def cell_manager(test, cell='cell1'):
    """The transaction manager of a cell; that of all hosts in most tests."""
    with nova_context.target_cell(nova_context.get_admin_context(),
                                  test.cell_mappings[cell]) as targeted:
        return targeted.db_connection


class Copy(object):
    """The content of a cell's database at one moment.

    :param manager: its transaction manager
    """

    def __init__(self, manager):
        # taken in one thread and read in another
        self._content = sqlite3.connect(':memory:', check_same_thread=False)
        pooled, source = _raw(manager.writer.get_engine())
        try:
            source.backup(self._content)
        finally:
            pooled.close()
        self._manager = None

    def manager(self):
        """A transaction manager that reads from the copy."""
        if self._manager is None:
            manager = enginefacade.transaction_context()
            manager.configure(connection='sqlite://')
            pooled, target = _raw(manager.writer.get_engine())
            try:
                self._content.backup(target)
            finally:
                pooled.close()
            self._manager = manager
        return self._manager

    def close(self):
        if self._manager is not None:
            self._manager.writer.get_engine().dispose()
        self._content.close()
