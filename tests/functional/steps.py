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

"""The steps of a settlement, and a nova-compute that is killed at one.

A step changes something that outlives the process: a row of a database, a
message to another host, Cinder, Neutron, Placement, a guest, a disk, the
journal. Between two steps nothing but memory changes, so that to be killed
before each of them is to be killed everywhere.

Nobody lists the steps of a settlement: they are found as it takes them.
"""

import contextlib
import functools
import inspect
import threading

import fixtures
from oslo_messaging import transport

from nova.scheduler.client import report
from nova import service
from nova.virt.libvirt import driver
from nova.volume import cinder

from tests.functional import libvirt_client
from tests.functional import process
from tests.functional import releases
from tests.functional import wrapping

#: Messages that only ask.
QUESTIONS = frozenset([
    'check_instance_shared_storage', 'get_console_output',
    'get_instance_diagnostics'])

#: libvirt's methods that only ask begin with one of these.
LIBVIRT_QUESTIONS = ('ID', 'UUIDString', 'XMLDesc', 'blockJobInfo', 'close',
                     'get', 'has', 'info', 'is', 'job', 'list', 'lookup',
                     'memoryStats', 'name', 'open', 'secretLookup', 'state',
                     'blockStats')

CINDER = ('attachment_complete', 'attachment_create', 'attachment_delete',
          'attachment_update', 'begin_detaching', 'detach', 'roll_detaching',
          'terminate_connection', 'unreserve_volume')

#: Of Neutron, on the fixture's class; some are of Nova's client in 20.
NEUTRON = ('activate_port_binding', 'create_port_binding', 'delete_port',
           'delete_port_binding', 'update_port')

#: What the driver does to a host's disks.
DISKS = ('cleanup_instance_directory', 'delete_instance_files')


class Killed(BaseException):
    """The nova-compute of the test's thread was killed."""


#: Functions beside those that write to a database begin with one of these.
HELPERS = ('_', 'configure', 'convert', 'create_context', 'get', 'model_query',
           'pick', 'select')


def _writes(database):
    """The names of the functions that write to Nova's database."""
    for name, function in vars(database).items():
        if (inspect.isfunction(function) and
                function.__module__ == database.__name__ and
                not name.startswith(HELPERS) and
                ('_get' not in name or '_update' in name)):
            yield name


class Steps(fixtures.Fixture):
    """Sees the steps of settlements, and kills a nova-compute at one.

    A killed process ends at once: the thread that came to the step ends, and
    so does every other one at its next step. What ``finally`` does on the way
    is nothing, or a step. The test's own thread gets :class:`Killed`.

    :param cloud: the :class:`~tests.functional.cloud.CloudTestCase`
    """

    def __init__(self, cloud):
        super(Steps, self).__init__()
        self._cloud = cloud
        self._at = None
        self._inside = set()
        #: {thread: its ComputeProcess} of those that settle
        self._settling = {}
        #: the names of the steps since :meth:`watch`
        self.taken = []

    def watch(self, at):
        """Count from here, and kill before one of the steps.

        :param at: its number; the first one is 1
        """
        self.taken = []
        self._at = at

    def _setUp(self):
        from nova_migration_guard import guard
        from nova_migration_guard import journal
        from nova_migration_guard import settle
        from nova_migration_guard import workers
        database = releases.database_api()
        for name in _writes(database):
            self._wrap_function(database, name)
        for owner, names in (
                (report.SchedulerReportClient, ('put', 'post', 'delete')),
                (cinder.API, CINDER),
                (releases.NeutronFixture, NEUTRON),
                (releases.neutron.API, NEUTRON),
                (driver.LibvirtDriver, DISKS),
                (journal.Journal, ('begin', 'advance', 'end'))):
            for name in names:
                if hasattr(owner, name):
                    self._wrap(owner, name, functools.partial(
                        self._step, '%s.%s' % (owner.__name__, name)))
        for owner, name, wrapper in (
                (transport.Transport, '_send', self._send),
                (libvirt_client.LibvirtClient, 'call', self._call_libvirt),
                (settle.Settler, 'settle', self._settle),
                (workers.Workers, 'call', self._wait),
                (workers.Workers, 'call_each', self._wait),
                (guard.Guard, '_settle_each', self._settle_each),
                (service.Service, 'start', self._start)):
            self._wrap(owner, name, wrapper)

    def _wrap(self, owner, name, wrapper):
        self.useFixture(fixtures.MockPatchObject(
            owner, name, wrapping.Wrapped(owner, name, wrapper)))

    def _wrap_function(self, module, name):
        original = getattr(module, name)

        @functools.wraps(original)
        def function(*args, **kwargs):
            return self._step(name, lambda: original(*args, **kwargs))
        self.useFixture(fixtures.MockPatchObject(module, name, function))

    # ---- which process a thread is of

    def _start(self, call, started):
        # known before it has started: it may be killed in the start
        starting = self._cloud.connections.starting
        if starting is not None:
            starting.service = started
        return call()

    def _settle(self, call, settler, *args):
        me = threading.get_ident()
        compute = process.of_object(settler._parts.host._manager)
        self._settling[me] = compute
        try:
            return call()
        finally:
            del self._settling[me]

    def _settle_each(self, call, guard, *args):
        try:
            return call()
        finally:
            compute = process.of_object(guard._parts.host._manager)
            if not compute.alive:
                raise Killed()

    # ---- what a step is

    def _of_thread(self):
        me = threading.get_ident()
        return None if me in self._inside else self._settling.get(me)

    def _step(self, name, call, *args):
        compute = self._of_thread()
        if compute is None:
            return call()
        return self._take(compute, name, call)

    def _send(self, call, sender, target, context, message, *args):
        if message.get('method') in QUESTIONS:
            return call()
        return self._step('%s to %s' % (
            message.get('method'), target.server or target.topic), call)

    def _call_libvirt(self, call, client, method, *args):
        compute = client.process
        if (threading.get_ident() in self._inside or
                compute not in list(self._settling.values())):
            return call()
        if method.startswith(LIBVIRT_QUESTIONS):
            self._live_or_end(compute)
            return call()
        return self._take(compute, 'libvirt.' + method, call)

    def _wait(self, call, *args):
        compute = self._of_thread()
        result = call()
        if compute is not None:
            self._live_or_end(compute)
        return result

    @staticmethod
    def _live_or_end(compute):
        if not compute.alive:
            raise releases.thread_exit()()

    def _take(self, compute, name, call):
        self._live_or_end(compute)
        self.taken.append(name)
        if len(self.taken) == self._at:
            compute.alive = False
            self._live_or_end(compute)
        with self._one_step():
            return call()

    @contextlib.contextmanager
    def _one_step(self):
        """What a step is made of is no step."""
        me = threading.get_ident()
        self._inside.add(me)
        try:
            yield
        finally:
            self._inside.discard(me)
