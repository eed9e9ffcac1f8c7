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

"""The only module of these tests that knows how Nova's releases differ.

What differs is found by looking (which module is there, which attribute the
base class has) wherever that is possible, and by version number only where
Nova's behaviour differs and its shape does not.
"""

import contextlib
import importlib
import inspect
import json
import re
import sys
from unittest import mock

import fixtures
from oslo_config import cfg
from oslo_utils.fixture import uuidsentinel as uuids
from oslo_utils import uuidutils

from nova.tests.functional.libvirt import base
from nova import version
from nova.virt.libvirt import driver as libvirt_driver
from nova.volume import cinder

CONF = cfg.CONF


def _first_module(*names):
    for name in names[:-1]:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return importlib.import_module(names[-1])


#: '34.0.0'
RELEASE = version.version_string()

#: (34, 0, 0)
VERSION = tuple(int(x) for x in RELEASE.split('.')[:3] if x.isdigit())

#: Nova's fake of the libvirt binding; it moved in 23.0.
fakelibvirt = _first_module('nova.tests.fixtures.libvirt',
                            'nova.tests.unit.virt.libvirt.fakelibvirt')

#: The client of Neutron; it moved in 21.0.
neutron = _first_module('nova.network.neutron', 'nova.network.neutronv2.api')

#: The client of Glance; it moved in 22.0.
image_api = _first_module('nova.image.api', 'nova.image.glance')

#: REST API, conductor, scheduler, Placement, and no compute service yet.
BaseTestCase = base.ServersTestBase

#: An image that every release's fake image service has.
IMAGE = '155d900f-4e14-4e4c-a73d-069cbf4541e6'


class CinderFixture(_first_module(
        'nova.tests.fixtures.cinder',
        'nova.tests.fixtures').CinderFixture):
    """Cinder, with the attachments of its volumes.

    The fakes of old releases do not say what kind of volume it is, which
    leaves the libvirt driver without a way to attach one.
    """

    def setUp(self):
        super(CinderFixture, self).setUp()
        if VERSION >= (23,):
            return
        for name in ('attachment_get', 'attachment_update'):
            self.useFixture(fixtures.MockPatchObject(
                cinder.API, name, self._completed(getattr(cinder.API, name))))

    def fake_attachment_get_all(self, context, instance_id=None,
                                volume_id=None):
        # Nova's own answers with a dict where it is asked for a volume
        return [attachment for volume, attachments in
                self.volume_to_attachment.items()
                for attachment in attachments.values()
                if volume_id in (None, volume) and
                instance_id in (None, attachment['instance_uuid'])]

    @staticmethod
    def _completed(original):
        def call(*args, **kwargs):
            attachment = original(*args, **kwargs)
            info = attachment.get('connection_info')
            if isinstance(info, dict):
                info.setdefault('driver_volume_type', 'fake')
            return attachment
        return call


class NeutronFixture(base.LibvirtNeutronFixture):
    """A network per kind of port, with SR-IOV ports on ``network_4``.

    Up to 23 the fixture answers a new binding with what it was asked for;
    Neutron answers with the VIF's type and details, too, and without them no
    port can be plugged at the destination of a migration.
    """

    def _complete(self, port_id, data):
        port = self._ports[port_id]
        for name in ('vif_type', 'vif_details', 'vnic_type'):
            data['binding'].setdefault(name, port.get('binding:' + name, {}))

    if hasattr(base.LibvirtNeutronFixture, 'fake_create_port_binding'):
        def fake_create_port_binding(self, context, client, port_id, data):
            self._complete(port_id, data)
            return base.LibvirtNeutronFixture.fake_create_port_binding(
                context, client, port_id, data)
    elif hasattr(base.LibvirtNeutronFixture, 'get_port_binding'):
        def create_port_binding(self, context, client, port_id, data):
            if port_id in self._ports:
                self._complete(port_id, data)
            return super(NeutronFixture, self).create_port_binding(
                context, client, port_id, data)


def eventlet_is_used():
    """Whether Nova runs on eventlet in this process."""
    if 'eventlet' not in sys.modules:
        return False
    return sys.modules['eventlet'].patcher.is_monkey_patched('thread')


def thread_exit():
    """The exception that ends a thread without a word, whatever its kind.

    It is no subclass of Exception, so Nova's handlers do not see it.
    """
    if eventlet_is_used():
        return importlib.import_module('greenlet').GreenletExit
    return SystemExit


def keep_notifications(test):
    """Let :func:`notifications` know what is notified from now on.

    :param test: the test case, before its services start
    """
    if not hasattr(test, 'notifier'):
        _first_module('nova.tests.unit.fake_notifier').stub_notifier(test)


def notifications(test):
    """What Nova has notified: ({legacy event type}, {versioned event type}).

    :param test: the test case
    """
    notifier = getattr(test, 'notifier', None)
    if notifier is None:
        # to 22.x
        notifier = _first_module('nova.tests.unit.fake_notifier')
        legacy, versioned = (notifier.NOTIFICATIONS,
                             notifier.VERSIONED_NOTIFICATIONS)
    else:
        legacy, versioned = (notifier.notifications,
                             notifier.versioned_notifications)
    return ({message.event_type for message in legacy},
            {message['event_type'] for message in versioned})


def casts_are_casts():
    """A fixture that keeps the base class from turning casts into calls.

    What these tests are about happens while a cast is under way.
    """
    if hasattr(BaseTestCase, 'CAST_AS_CALL'):
        return fixtures.MockPatchObject(BaseTestCase, 'CAST_AS_CALL', False)
    module = _first_module('nova.tests.fixtures.cast_as_call',
                           'nova.tests.unit.cast_as_call')
    for name in ('CastAsCallFixture', 'CastAsCall'):
        if hasattr(module, name):
            return fixtures.MockPatchObject(
                getattr(module, name), 'setUp', fixtures.Fixture.setUp)
    raise AssertionError('CastAsCall has moved')


class LocalImages(fixtures.Fixture):
    """Lets Nova's fake of a disk on 20.x be a file of its host.

    Later fakes say by themselves that a disk is not shared, and that it takes
    QEMU to make an image of it.
    """

    def _setUp(self):
        fake = _first_module(
            'nova.tests.fixtures.libvirt_imagebackend',
            'nova.tests.unit.virt.libvirt.fake_imagebackend')
        self.owner = getattr(fake, 'LibvirtImageBackendFixture', None) or (
            fake.ImageBackendFixture)
        self._complete('_mock_backend', self._backend)
        self._complete('_mock_disk', self._disk)

    def _complete(self, name, complete):
        original = getattr(self.owner, name)

        def method(*args, **kwargs):
            made = original(*args, **kwargs)
            complete(made)
            return made
        self.useFixture(fixtures.MockPatchObject(self.owner, name, method))

    @staticmethod
    def _backend(backend):
        if not hasattr(backend, 'is_shared_block_storage'):
            backend.is_shared_block_storage = lambda: False

    @staticmethod
    def _disk(disk):
        disk.direct_snapshot.side_effect = NotImplementedError()


def images_wait_for_their_data():
    """A fixture that lets a new image be "queued", as Glance does.

    The fakes call it active at once.
    """
    fake = _first_module('nova.tests.fixtures.glance',
                         'nova.tests.unit.image.fake')
    owner = getattr(fake, 'GlanceFixture', None) or fake._FakeImageService
    original = owner.create

    def create(self, context, metadata, data=None):
        return original(self, context, dict(
            metadata, status='active' if data else 'queued'), data)
    return fixtures.MockPatchObject(owner, 'create', create)


def host_identity(host):
    """A context in which a starting nova-compute reads its host's node UUID.

    From 27.0 a node has an identity on disk; all hosts share one disk here.
    """
    try:
        node = importlib.import_module('nova.virt.node')
    except ImportError:
        return contextlib.nullcontext()
    if not hasattr(node, 'get_local_node_uuid'):
        return contextlib.nullcontext()
    return mock.patch.object(node, 'get_local_node_uuid',
                             return_value=getattr(uuids, 'node_' + host))


def options(test):
    """Options that some releases have, set so that tests end in time."""
    for group, name, value in (
            # how long a stopping service waits for what it still does
            (None, 'manager_shutdown_timeout', 2),
            (None, 'graceful_shutdown_timeout', 3),
            # no libvirt event says that a device is unplugged
            ('libvirt', 'device_detach_timeout', 1),
            # no agent says that a port is plugged
            ('compute', 'live_migration_wait_for_vif_plug', False)):
        if name in (CONF[group] if group else CONF):
            test.flags(**dict({name: value},
                              **({'group': group} if group else {})))


def pci_devices(physical_functions=1, virtual_functions=1):
    """The PCI devices of a host."""
    return fakelibvirt.HostPCIDevicesInfo(
        num_pfs=physical_functions, num_vfs=virtual_functions)


def pci_device_spec_option():
    """The name in ``[pci]`` of what may be passed through; renamed in 26."""
    for name in ('device_spec', 'passthrough_whitelist'):
        if name in CONF.pci:
            return name
    raise AssertionError('[pci] has no list of devices')


def register_pci_devices(test, pci_info):
    """Tell the fake sysfs the MAC addresses of a host's PCI devices."""
    if hasattr(pci_info, 'get_pci_address_mac_mapping'):
        test.libvirt.update_sriov_mac_address_mapping(
            pci_info.get_pci_address_mac_mapping())


def connection(host, pci_info=None, huge_pages=0):
    """A connection of Nova's fake libvirt that stands for one host.

    :param huge_pages: how many of 2 MiB each of its two NUMA nodes has
    """
    memory = 15740000    # KiB
    pages = None
    if huge_pages:
        pages = {node: fakelibvirt.create_mempages([
            (4, (memory // 2 - huge_pages * 2048) // 4), (2048, huge_pages)])
            for node in range(2)}
    return fakelibvirt.Connection(
        'qemu:///system',
        version=fakelibvirt.FAKE_LIBVIRT_VERSION,
        hv_version=fakelibvirt.FAKE_QEMU_VERSION,
        host_info=fakelibvirt.HostInfo(
            cpu_nodes=2, cpu_sockets=1, cpu_cores=2, cpu_threads=2,
            kB_mem=memory, **({'mempages': pages} if pages else {})),
        pci_info=pci_info, hostname=host)


def hosts_have_huge_pages():
    """Whether the fake hosts of this release can have huge pages."""
    return 'mempages' in inspect.signature(fakelibvirt.HostInfo).parameters


def enable_persistent_memory(test):
    """Let each host have two namespaces of persistent memory, SMALL."""
    test.flags(pmem_namespaces='SMALL:ns_0|ns_1', group='libvirt')
    test.useFixture(fixtures.MockPatch(
        'nova.privsep.libvirt.get_pmem_namespaces', return_value=json.dumps([
            {'dev': 'namespace0.%d' % number, 'mode': 'devdax', 'map': 'mem',
             'size': 1 << 30, 'name': 'ns_%d' % number, 'numa_node': 0,
             'daxregion': {'id': 0, 'size': 1 << 30, 'align': 2 << 20,
                           'devices': [{'chardev': 'dax0.%d' % number,
                                        'size': 1 << 30}]}}
            for number in range(2)])))
    test.useFixture(fixtures.MockPatch('nova.privsep.libvirt.cleanup_vpmem'))


def driver_stubs():
    """What the libvirt driver must not do for real: {method: result}.

    Every host of a test shares this machine, so nothing may be found on a
    shared disk, and no file is an image that could be looked into.
    """
    stubs = {
        '_is_shared_block_storage': False,
        '_check_shared_storage_test_file': False,
        'check_instance_shared_storage_remote': False,
        'get_instance_disk_info': '[]',
        '_assert_dest_node_has_enough_disk': None,
    }
    if VERSION < (24,):
        # asks privsep for the names of this machine's iSCSI initiators
        stubs['get_volume_connector'] = {}
    return stubs


def placement(test):
    """The client of the Placement API."""
    return getattr(test, 'placement', None) or test.placement_api


def port_bindings(neutron, port_id):
    """{host: status} of a port's bindings; the fake of 20.x keeps none.

    :param neutron: the :class:`NeutronFixture`
    """
    return {host: binding['status'] for host, binding in
            getattr(neutron, '_port_bindings', {}).get(port_id, {}).items()}


def volume_attachments(cinder, volume_id):
    """The IDs of a volume's attachments.

    :param cinder: the :class:`CinderFixture`
    """
    return set(cinder.volume_to_attachment[volume_id])


def attachments_can_be_listed():
    """Whether Nova asks Cinder for all attachments of a volume (25)."""
    return hasattr(cinder.API, 'attachment_get_all')


def executor_factory():
    """A new owner of thread pools, where they belong to a process (34).

    :returns: a nova.thread_pool_factory.ThreadPoolFactory; None on releases
        where each manager has its own
    """
    try:
        module = importlib.import_module('nova.thread_pool_factory')
    except ImportError:
        return None
    return module.ThreadPoolFactory()


def rpc_servers(service):
    """The RPC servers of a nova-compute; from 34 there is a second one."""
    return [server for server in (
        getattr(service, 'rpcserver', None),
        getattr(service, 'rpcserver_alt', None)) if server]


def operation_has_ended(signal):
    """Whether the thread that called migrateToURI3 is over.

    :param signal: what the monitor of a migration is told about that thread:
        an eventlet event to 31, a future from 32
    """
    if hasattr(signal, 'done'):
        return signal.done()
    return signal.ready()


def evacuation_races_audit():
    """Whether an evacuation saves host and status outside the audit's lock.

    Fixed in 21.2.0, 22.1.0 and 23.0.0 (bug 1896463), never in 20.x.
    """
    return VERSION < (21, 2) or (22,) <= VERSION < (22, 1)


def copies_before_it_freezes():
    """Whether a live snapshot freezes file systems only for its end.

    The frozen guest would wait for as long as the copy takes (25.0).
    """
    return VERSION >= (25,)


def audit_reads_of_migrations(migration_list):
    """The names of the MigrationList methods that the audit calls."""
    return [name for name in ('get_in_progress_and_error',
                              'get_in_progress_by_host_and_node')
            if hasattr(migration_list, name)]


def database_api():
    """The module with the functions that read and write a cell's database.

    Nova's objects look them up there at each call; it moved in 23.0.
    """
    return _first_module('nova.db.main.api', 'nova.db.api')


def devices_by_alias_migrate_live():
    """Whether a guest with a device by alias can be migrated live (31)."""
    return VERSION >= (31,)


def let_devices_migrate_live(test):
    """Let guests take their devices by alias along, where that is possible.

    It needs a libvirt that is newer than the one of Nova's fixtures.
    """
    if not devices_by_alias_migrate_live():
        return
    use_new_libvirt(test)
    for name in (pci_device_spec_option(), 'alias'):
        test.flags(group='pci', **{name: [
            value[:-1] + ', "live_migratable": "yes"}'
            for value in CONF.pci[name]]})


def resizes_across_cells():
    """Whether a server can be resized to a host of another cell (21)."""
    return VERSION >= (21,)


def use_new_libvirt(test):
    """Let hosts have a libvirt and a QEMU of 2024."""
    for name, number in (('FAKE_LIBVIRT_VERSION', 10000000),
                         ('FAKE_QEMU_VERSION', 8002002)):
        test.useFixture(fixtures.MockPatchObject(fakelibvirt, name, number))


def mdevs_migrate_live():
    """Whether a guest with a mediated device can be migrated live (29)."""
    return VERSION >= (29,)


def mdev_capable_devices():
    """The PCI devices of a host with one GPU that can be shared."""
    return fakelibvirt.HostPCIDevicesInfo(
        num_pfs=0, num_vfs=0, num_mdevcap=1)


def mdev(parent, mdev_type, uuid):
    """A mediated device of Nova's fake libvirt.

    :returns: {name: device}
    """
    name = 'mdev_' + uuid.replace('-', '_')
    return {name: fakelibvirt.FakeMdevDevice(
        dev_name=name, type_id=mdev_type, parent=parent)}


def enable_mdevs(test, create):
    """Let hosts share GPUs.

    :param create: what makes a mediated device: (parent, type, UUID)
    """
    test.flags(enabled_mdev_types=[fakelibvirt.NVIDIA_11_VGPU_TYPE],
               group='devices')
    use_new_libvirt(test)

    def create_mdev(parent, mdev_type, uuid=None):
        uuid = uuid or uuidutils.generate_uuid()
        create(parent, mdev_type, uuid)
        return uuid

    # the driver asks libvirt for one; to 29 it writes to sysfs
    if hasattr(libvirt_driver.LibvirtDriver, '_create_mdev'):
        test.useFixture(fixtures.MockPatchObject(
            libvirt_driver.LibvirtDriver, '_create_mdev',
            lambda driver, *args, **kwargs: create_mdev(*args, **kwargs)))
    else:
        test.useFixture(fixtures.MockPatch(
            'nova.privsep.libvirt.create_mdev',
            lambda address, *args, **kwargs: create_mdev(
                'pci_' + re.sub('[:.]', '_', address), *args, **kwargs)))


def snapshots_are_fakes():
    """A fixture that lets shelving a guest make no image."""
    return fixtures.MockPatch(
        'nova.virt.libvirt.driver.LibvirtDriver.snapshot')


def migrated_guest_names_its_devices():
    """Whether a migrated guest's XML has the address that was claimed for it.

    On these fixtures a guest of 20 and 21 keeps that of its source, which
    differs where the hosts' devices were given away in different orders.
    """
    return VERSION >= (22,)


def unshelved_is_not_counted():
    """Whether an audit counts nothing of an instance that is unshelved.

    Nova goes by the state alone there, and by the task, too, where the list
    has become a function.
    """
    vm_states = importlib.import_module('nova.compute.vm_states')
    return hasattr(vm_states, 'ALLOW_RESOURCE_REMOVAL')
