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

"""The effects of a nova-compute: what it does that outlives its process.

A row of a database is written, a message is sent or has been received,
libvirt, Cinder, Neutron, Placement or Glance is told something, the journal
is written, a file is removed. Between two effects nothing but memory changes,
so that to be killed before and after each of them is to be killed everywhere.

Nobody lists the effects of an operation: they are found as it has them. Each
has a name of two parts, which say where it is and what it does:
``db:instance_update_and_get_original``, ``rpc:pre_live_migration``,
``libvirt:abortJob``, ``cinder:attachment_create``,
``neutron:delete_port_binding``, ``placement:put_allocations``,
``glance:update``, ``journal:advance``, ``files:delete_instance_files``.
"""

import contextlib
import functools
import inspect
import threading

import fixtures
from oslo_messaging.rpc import dispatcher
from oslo_messaging import transport

from nova.scheduler.client import report
from nova.virt.libvirt import driver
from nova.volume import cinder

from tests.functional import hypervisor
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
          'attachment_update', 'begin_detaching', 'detach',
          'migrate_volume_completion', 'roll_detaching',
          'terminate_connection', 'unreserve_volume',
          'update_snapshot_status')

#: Of Neutron, on the fixture's class; some are of Nova's client in 20.
NEUTRON = ('activate_port_binding', 'create_port_binding', 'delete_port',
           'delete_port_binding', 'update_port')

GLANCE = ('create', 'update', 'delete')

#: What the driver does to a host's disks.
DISKS = ('cleanup_instance_directory', 'delete_instance_files')

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


class Effects(fixtures.Fixture):
    """Sees the effects of every nova-compute of a test.

    What an effect is made of is no effect. A subclass says what happens
    at one, in :meth:`take`.

    :param cloud: the :class:`~tests.functional.cloud.CloudTestCase`
    """

    def __init__(self, cloud):
        super(Effects, self).__init__()
        self._cloud = cloud
        # threads that are in an effect
        self._inside = set()

    def take(self, compute, name, call):
        """A nova-compute is about to have an effect.

        :param compute: the :class:`~tests.functional.process.ComputeProcess`
        :param name: the effect's name
        :param call: has it, and returns what the caller is to learn
        """
        raise NotImplementedError()

    def compute_of_thread(self):
        """The ComputeProcess that the caller's thread is of, or None."""
        return process.of_caller()

    def sees(self, compute):
        """Whether what a process tells libvirt is looked at."""
        return True

    def look(self, compute, call):
        """A nova-compute asks libvirt something."""
        return call()

    def receive(self, compute, name, incoming, call):
        """A nova-compute has received a message."""
        return call()

    def _setUp(self):
        from nova_migration_guard import journal
        database = releases.database_api()
        for name in _writes(database):
            self._wrap_function(database, name)
        for prefix, owner, names in (
                ('cinder:', cinder.API, CINDER),
                ('neutron:', releases.NeutronFixture, NEUTRON),
                ('neutron:', releases.neutron.API, NEUTRON),
                ('glance:', releases.image_api.API, GLANCE),
                ('files:', driver.LibvirtDriver, DISKS),
                ('journal:', journal.Journal, ('begin', 'advance', 'end'))):
            for name in names:
                if hasattr(owner, name):
                    self.wrap(owner, name, functools.partial(
                        self._effect, prefix + name))
        for name in ('put', 'post', 'delete'):
            self.wrap(report.SchedulerReportClient, name, functools.partial(
                self._tell_placement, name))
        for owner, name, wrapper in (
                (transport.Transport, '_send', self._send),
                (dispatcher.RPCDispatcher, 'dispatch', self._dispatch),
                (libvirt_client.LibvirtClient, 'call', self._call_libvirt),
                (hypervisor.Hypervisor, 'migrate', self._migrate)):
            self.wrap(owner, name, wrapper)

    def wrap(self, owner, name, wrapper):
        """Call something in place of a method of Nova's; see Wrapped."""
        self.useFixture(fixtures.MockPatchObject(
            owner, name, wrapping.Wrapped(owner, name, wrapper)))

    def _wrap_function(self, module, name):
        original = getattr(module, name)

        @functools.wraps(original)
        def function(*args, **kwargs):
            return self._effect('db:' + name,
                                lambda: original(*args, **kwargs))
        self.useFixture(fixtures.MockPatchObject(module, name, function))

    def _effect(self, name, call, *args):
        if threading.get_ident() in self._inside:
            return call()
        compute = self.compute_of_thread()
        if compute is None:
            return call()
        return self.take(compute, name, self._one_effect(call))

    def _one_effect(self, call):
        def one():
            with self._inside_one():
                return call()
        return one

    @contextlib.contextmanager
    def _inside_one(self):
        me = threading.get_ident()
        self._inside.add(me)
        try:
            yield
        finally:
            self._inside.discard(me)

    def _tell_placement(self, verb, call, client, url, *args):
        return self._effect('placement:%s_%s' % (
            verb, url.strip('/').partition('/')[0]), call)

    def _send(self, call, sender, target, context, message, *args):
        if message.get('method') in QUESTIONS:
            return call()
        return self._effect('rpc:%s' % message.get('method'), call)

    def _dispatch(self, call, receiver, incoming):
        for endpoint in receiver.endpoints:
            # 34 tracks the calls of an endpoint with another around it
            compute = process.of_object(
                vars(endpoint).get('_endpoint', endpoint))
            if compute is not None:
                return self.receive(
                    compute, incoming.message.get('method'), incoming, call)
        return call()

    def _call_libvirt(self, call, client, method, *args):
        compute = client.process
        if (threading.get_ident() in self._inside or
                not self.sees(compute)):
            return call()
        if method == 'migrateToURI3':
            # it returns when the migration has ended; its effect is that one
            # begins
            return call()
        if method.startswith(LIBVIRT_QUESTIONS):
            return self.look(compute, call)
        return self.take(compute, 'libvirt:' + method, self._one_effect(call))

    def _migrate(self, call, source, *args):
        compute = self._cloud.processes.get(source.host)
        if compute is None or not self.sees(compute):
            return call()
        return self.take(compute, 'libvirt:migrateToURI3',
                         self._one_effect(call))
