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

"""How often an audit, or anything else, asks Nova's database."""

import functools
import threading

import fixtures
import sqlalchemy.event

from nova.compute import resource_tracker

from tests.functional import releases


def _functions(module):
    """The functions of Nova's database API: [(name, function)]."""
    return [(name, function) for name, function in list(vars(module).items())
            if callable(function) and not name.startswith('_') and
            getattr(function, '__module__', None) == module.__name__ and
            not isinstance(function, type)]


class Calls(fixtures.Fixture):
    """Notes what all threads ask of instances and migrations.

    What services tell of themselves now and then does not count.
    """

    def __init__(self):
        super(Calls, self).__init__()
        #: names of the functions of Nova's database API
        self.names = []
        self._inside = threading.local()

    def _setUp(self):
        module = releases.database_api()
        for name, function in _functions(module):
            if name.startswith(('instance_', 'migration_')):
                self.useFixture(fixtures.MockPatchObject(
                    module, name, self._noting(name, function)))

    def _noting(self, name, function):
        @functools.wraps(function)
        def query(*args, **kwargs):
            if getattr(self._inside, 'one', False):
                return function(*args, **kwargs)
            self.names.append(name)
            self._inside.one = True
            try:
                return function(*args, **kwargs)
            finally:
                self._inside.one = False
        return query


class Queries(fixtures.Fixture):
    """Counts what each audit asks of the database.

    A *query* is a call of a function of Nova's database API: one message to
    the conductor in a real nova-compute. A *statement* is what the database
    gets; one query may take several.

    :param manager: the transaction manager of the cell's database
    """

    def __init__(self, manager):
        super(Queries, self).__init__()
        self._manager = manager
        #: [(host, functions that were called, how many of them the guard
        #: called, statements)], one for each audit that has ended
        self.audits = []
        self._counted = threading.local()

    def _setUp(self):
        module = releases.database_api()
        for name, function in _functions(module):
            self.useFixture(fixtures.MockPatchObject(
                module, name, self._counting(function)))
        self._measure(resource_tracker.ResourceTracker,
                      '_update_available_resource', self._audit)
        engine = self._manager.writer.get_engine()
        sqlalchemy.event.listen(engine, 'before_cursor_execute', self._execute)
        self.addCleanup(sqlalchemy.event.remove, engine,
                        'before_cursor_execute', self._execute)

    def watch_guard(self):
        """Tell the guard's queries from Nova's."""
        from nova_migration_guard import resource_guard
        self._measure(resource_guard.Audit, 'complete', self._guard)

    def _measure(self, owner, name, wrapper):
        original = getattr(owner, name)

        @functools.wraps(original)
        def method(method_self, *args, **kwargs):
            return wrapper(method_self, lambda: original(
                method_self, *args, **kwargs))
        self.useFixture(fixtures.MockPatchObject(owner, name, method))

    def _counting(self, function):
        @functools.wraps(function)
        def query(*args, **kwargs):
            counted = vars(self._counted)
            if not counted.get('counts') or counted['inside']:
                return function(*args, **kwargs)
            counted['queries'].append(function.__name__)
            counted['inside'] = True
            try:
                return function(*args, **kwargs)
            finally:
                counted['inside'] = False
        return query

    def _execute(self, *args):
        counted = vars(self._counted)
        if counted.get('counts'):
            counted['statements'] += 1

    def _audit(self, tracker, run):
        counted = vars(self._counted)
        counted.update(counts=True, inside=False, queries=[], guard=0,
                       statements=0)
        try:
            return run()
        finally:
            counted['counts'] = False
            self.audits.append((tracker.host, counted['queries'],
                                counted['guard'], counted['statements']))

    def _guard(self, audit, run):
        counted = vars(self._counted)
        before = len(counted['queries'])
        try:
            return run()
        finally:
            counted['guard'] += len(counted['queries']) - before

    def of_last(self, host):
        """(functions, the guard's calls, statements) of the last audit."""
        return [found[1:] for found in self.audits if found[0] == host][-1]
