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

"""What separates hosts that share one Python process."""

import os
from urllib import parse

import fixtures
from oslo_concurrency import lockutils

from nova.network import model
from nova.virt.libvirt import driver
from nova.virt.libvirt import host as libvirt_host
from nova.virt.libvirt import utils as libvirt_utils

from tests.functional import disks
from tests.functional import process
from tests.functional import releases


class SeparateLocks(fixtures.Fixture):
    """Give every nova-compute locks of its own.

    With those that the process has, no audit could run on one host while
    another claims or frees, and that is when the races happen; and what a
    killed nova-compute had locked would be so for the next one.
    """

    def _setUp(self):
        original = lockutils.lock

        def lock(name, *args, **kwargs):
            compute = process.of_caller()
            if compute is not None:
                name = '%s-%d' % (name, id(compute))
            return original(name, *args, **kwargs)
        self.useFixture(fixtures.MockPatchObject(lockutils, 'lock', lock))


class SeparateExecutors(fixtures.Fixture):
    """Give every nova-compute its thread pools, where a process has some.

    The threads of a killed one must not keep the next one waiting.
    """

    def _setUp(self):
        factory = releases.executor_factory()
        if factory is None:
            return
        original = type(factory).get_executor

        def get_executor(factory, executor_type):
            compute = process.of_caller()
            if compute is not None:
                factory = compute.executors
            return original(factory, executor_type)
        self.useFixture(fixtures.MockPatchObject(
            type(factory), 'get_executor', get_executor))
        shutdown_all = type(factory).shutdown_all

        def shut_down(factory):
            compute = process.of_caller()
            return shutdown_all(compute.executors if compute else factory)
        self.useFixture(fixtures.MockPatchObject(
            type(factory), 'shutdown_all', shut_down))


class SeparateConnections(fixtures.Fixture):
    """Give every driver the libvirt connections of its own process.

    A driver belongs to the process that is being started when it asks for
    its connection first. Further ones are opened as the driver opens its own.
    """

    def _setUp(self):
        self.starting = None
        fixture = self

        def get_connection(host):
            if not hasattr(host, 'connection_of_the_test'):
                host.connection_of_the_test = fixture.starting.client
            return host.connection_of_the_test

        def connect(self, uri, read_only):
            return get_connection(self).another(parse.urlparse(uri).hostname)
        for name, function in (('get_connection', get_connection),
                               ('_connect', connect)):
            self.useFixture(fixtures.MockPatchObject(
                libvirt_host.Host, name, function))


class SeparateDisks(fixtures.Fixture):
    """Give every host an instances folder, and put disks into it.

    The driver makes and deletes them; only their content is a label.

    :param world: the :class:`~tests.functional.hypervisor.World`
    """

    def __init__(self, world):
        super(SeparateDisks, self).__init__()
        self.world = world

    def _folder(self, instance):
        host = process.host_of_caller() or instance.host
        return self.world.hypervisors[host].disks.folder(instance.uuid)

    def _setUp(self):
        def instance_path(instance, relative=False):
            return instance.uuid if relative else self._folder(instance)

        def path_at_destination(instance, migrate_data=None):
            return self._folder(instance)

        self.useFixture(fixtures.MockPatchObject(
            libvirt_utils, 'get_instance_path', instance_path))
        self.useFixture(fixtures.MockPatchObject(
            libvirt_utils, 'get_instance_path_at_destination',
            path_at_destination))
        # Nova's fixtures make no image files
        original = driver.LibvirtDriver._create_image

        def create_image(virt_driver, context, instance, *args, **kwargs):
            self._disks(virt_driver).create(instance.uuid, disks.COMPLETE)
            return original(context, instance, *args, **kwargs)

        def create_backing(virt_driver, context, instance, *args, **kwargs):
            # only what is missing is made
            if not self._disks(virt_driver).get(instance.uuid):
                self._disks(virt_driver).create(instance.uuid, disks.EMPTY)

        def instance_on_disk(virt_driver, instance):
            return os.path.isdir(self._folder(instance))

        for name, function in (
                ('_create_image', create_image),
                ('_create_images_and_backing', create_backing),
                ('instance_on_disk', instance_on_disk)):
            self.useFixture(fixtures.MockPatchObject(
                driver.LibvirtDriver, name, function))
        for name, result in releases.driver_stubs().items():
            self.useFixture(fixtures.MockPatchObject(
                driver.LibvirtDriver, name, return_value=result))

    def _disks(self, virt_driver):
        host = virt_driver._host.get_connection().process.host
        return self.world.hypervisors[host].disks


class SeparateContexts(fixtures.Fixture):
    """Keep two threads of Nova off one RequestContext.

    The monitor of a migration and the thread that calls migrateToURI3 share
    one, which SQLite and eventlet do not bear: so the monitor begins when
    the other one is in libvirt. The same goes for the thread that allocates
    networks while a guest is built, which from 32 on begins at once: what it
    writes was lost.

    :param world: the :class:`~tests.functional.hypervisor.World`
    """

    def __init__(self, world):
        super(SeparateContexts, self).__init__()
        self.world = world

    def _setUp(self):
        world = self.world
        original = driver.LibvirtDriver._live_migration_monitor

        def monitor(virt_driver, context, instance, guest, dest, post_method,
                    recover_method, block_migration, migrate_data, signal,
                    disk_paths):
            compute = virt_driver._host.get_connection().process
            if hasattr(signal, 'seen_gone'):
                # an adopted migration: no other thread shares its context
                world.migrate_called.add(instance.uuid)
            world.wait_for(
                lambda: (instance.uuid in world.migrate_called or
                         releases.operation_has_ended(signal) or
                         not compute.alive), 'migrateToURI3 is called')
            compute.live_or_hang()
            world.migrate_called.discard(instance.uuid)
            return original(virt_driver, context, instance, guest, dest,
                            post_method, recover_method, block_migration,
                            migrate_data, signal, disk_paths)

        self.useFixture(fixtures.MockPatchObject(
            driver.LibvirtDriver, '_live_migration_monitor', monitor))

        allocate = model.NetworkInfoAsyncWrapper.__init__

        def wait_for_networks(info, *args, **kwargs):
            allocate(info, *args, **kwargs)
            if hasattr(info, '_future'):
                info._future.exception()

        self.useFixture(fixtures.MockPatchObject(
            model.NetworkInfoAsyncWrapper, '__init__', wait_for_networks))
