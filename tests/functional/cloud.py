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

"""A cloud in one process: Nova's real services, and a world outside them."""

import logging
import pathlib

import fixtures
from oslo_config import cfg
from oslo_serialization import jsonutils

from nova import context

from tests.functional import crashes
from tests.functional import hypervisor
from tests.functional import libvirt_api
from tests.functional import operations
from tests.functional import process
from tests.functional import properties
from tests.functional import releases
from tests.functional import separation
from tests.functional import views

CONF = cfg.CONF


class NoLock(object):
    """What a handler does not need; Python 3.13 wants to enter it."""

    def acquire(self):
        pass

    release = __enter__ = acquire

    def __exit__(self, *error):
        pass


class Records(logging.Handler):
    """Keeps log records, with what they say besides their message."""

    def __init__(self):
        super(Records, self).__init__(logging.INFO)
        self.records = []

    def createLock(self):
        # native and green threads log; list.append needs no lock
        self.lock = NoLock()

    def emit(self, record):
        self.records.append(record)


class CloudTestCase(operations.Operations, views.Views,
                    releases.BaseTestCase):
    """Compute hosts that can be killed and started, one API over them.

    A test method says with :mod:`tests.functional.properties` whether it runs
    with the guard; ``GUARD`` is for those that do not.
    """

    ADMIN_API = True
    USE_NEUTRON = True     # read by 20.x only
    api_major_version = 'v2.1'
    microversion = 'latest'
    ADDITIONAL_FILTERS = ['PciPassthroughFilter']

    #: Whether the guard is enabled.
    GUARD = False

    #: ``[migration_guard]`` in tests: short where a test sees the time run
    #: out, long enough for a busy machine, and a settler that acts when the
    #: test says so.
    GUARD_OPTIONS = {'abort_timeout': 3, 'startup_timeout': 20,
                     'call_timeout': 5, 'settle_interval': 3600}

    def setUp(self):
        method = getattr(self, self._testMethodName)
        self.guard = getattr(method, 'guard', self.GUARD)
        if self.guard:
            self._activate_guard()
        # one that is killed soon after its start has sent no heartbeat
        self.flags(service_down_time=3600)
        self.useFixture(releases.casts_are_casts())
        self.useFixture(releases.LocalImages())
        super(CloudTestCase, self).setUp()
        self.records = Records()
        self.useFixture(fixtures.LogHandler(
            self.records, nuke_handlers=False))
        self.computes = {}
        self.processes = {}
        self.killed = []
        releases.options(self)
        self.neutron = self.useFixture(releases.NeutronFixture(self))
        self.cinder = None
        self.world = hypervisor.World(
            self.useFixture(fixtures.TempDir()).path)
        self.flags(instances_path=self.world.instances_path)
        self.connections = self.useFixture(separation.SeparateConnections())
        self.useFixture(libvirt_api.RealNumbers())
        self.useFixture(separation.SeparateLocks())
        self.useFixture(separation.SeparateExecutors())
        self.useFixture(separation.SeparateDisks(self.world))
        self.useFixture(separation.SeparateContexts(self.world))
        if self.guard:
            self._connect_networks()

    def tearDown(self):
        # Before the clean-ups of Nova's fixtures, which wait for threads.
        if hasattr(self, 'world'):
            for compute in self.processes.values():
                self._stop_guard(compute)
            self.world.end()
            for compute in self.killed:
                compute.bury()
            for compute in self.killed + list(self.processes.values()):
                compute.shut_down_executors()
        super(CloudTestCase, self).tearDown()

    # ---- the guard

    def _activate_guard(self):
        # Before any fixture patches Nova: its patches stay for the life of
        # the process, and a fixture puts back what it found.
        from nova_migration_guard import conf
        from nova_migration_guard import plugin
        conf.register_opts(CONF)
        self.flags(compute_driver='libvirt.LibvirtDriver')
        self.flags(enabled=True, group='migration_guard')
        self.flags(group='migration_guard', **self.GUARD_OPTIONS)
        self.journals = self.useFixture(fixtures.TempDir()).path
        self.flags(journal_dir=self.journals, group='migration_guard')
        self.assertTrue(plugin.activate())

    def _connect_networks(self):
        """Let the guard see the model's network in place of a real one."""
        from nova_migration_guard import peers
        world = self.world

        def reachable(asked, peer):
            return peer not in world.cut_off
        self.useFixture(fixtures.MockPatchObject(
            peers.Peers, 'reachable', reachable))

    def settle(self, host):
        """Let the settler go on until nothing is held on a host."""
        def settled():
            self.guard_of(host).settle_held()
            return not self.held(host)
        self.wait_until(settled, lambda: 'settled: %s' % self.held(host))

    def journaled(self, host):
        """The paths of the files in a host's journal."""
        return sorted(pathlib.Path(self.journals, host).glob('*.json'))

    def lose_journal(self, host):
        for path in self.journaled(host):
            path.unlink()

    def held(self, host):
        """{instance UUID: Held} of what the guard holds on a host."""
        return self.guard_of(host).held

    def logged(self, logger='', about=None):
        """What was logged at INFO and above, as one string.

        :param logger: only what this logger and those below it have logged
        :param about: only what is said of the instance with this UUID
        """
        return '\n'.join(
            record.getMessage() for record in list(self.records.records)
            if record.name.startswith(logger) and
            (about is None or about == self._about(record)))

    @staticmethod
    def _about(record):
        """The UUID of the instance that a log record is about, or None."""
        return (getattr(record, 'instance_uuid', None) or
                getattr(getattr(record, 'instance', None), 'uuid', None))

    def guard_of(self, host):
        """The Guard in a host's nova-compute.

        :returns: a nova_migration_guard.guard.Guard
        """
        from nova_migration_guard import guards
        found = guards.for_manager(self.processes[host].manager)
        self.assertIsNotNone(found)
        return found

    def _stop_guard(self, compute):
        if self.guard and compute.service is not None:
            from nova_migration_guard import guards
            found = guards.for_manager(compute.manager)
            if found is not None:
                found.stop()

    # ---- compute hosts

    def enable_pci(self, alias=None):
        """Let hosts pass virtual functions through.

        :param alias: the name that flavors ask for them by
        """
        fake = releases.fakelibvirt
        devices = [jsonutils.dumps({
            'vendor_id': fake.PCI_VEND_ID, 'product_id': product,
            'physical_network': 'physnet4'})
            for product in (fake.PF_PROD_ID, fake.VF_PROD_ID)]
        self.flags(group='pci', **{releases.pci_device_spec_option(): devices})
        if alias:
            self.flags(group='pci', alias=[jsonutils.dumps({
                'vendor_id': fake.PCI_VEND_ID,
                'product_id': fake.VF_PROD_ID, 'name': alias})])

    def enable_volumes(self):
        """Let there be a Cinder."""
        self.cinder = self.useFixture(releases.CinderFixture(self))

    def start_host(self, host, pci_info=None, huge_pages=0):
        """Make a host, and start its nova-compute.

        :param pci_info: see :func:`releases.pci_devices`
        :param huge_pages: see :func:`releases.connection`
        """
        self.world.add(host, releases.connection(host, pci_info, huge_pages))
        if pci_info is not None:
            releases.register_pci_devices(self, pci_info)
        return self.start_compute(host)

    def cell_of(self, host):
        """What ``start_service`` is told of a host's cell, if anything."""
        return {}

    def start_hosts(self, *hosts):
        for host in hosts:
            self.start_host(host)

    def start_compute(self, host):
        """Start a nova-compute, the first one or a new one, on a host.

        :returns: a :class:`~tests.functional.process.ComputeProcess`
        """
        self.assertNotIn(host, self.processes)
        compute = process.ComputeProcess(
            self.world, self.world.hypervisors[host])
        # it may be killed before it has started
        self.processes[host] = compute
        self.connections.starting = compute
        try:
            with releases.host_identity(host):
                compute.service = self.start_service(
                    'compute', host=host, **self.cell_of(host))
                # what has not asked for its connection or its identity yet
                if hasattr(compute.manager.driver._host, 'get_node_uuid'):
                    compute.manager.driver._host.get_node_uuid()
        finally:
            self.connections.starting = None
        self.computes[host] = compute.service
        return compute

    def kill_compute(self, host):
        """SIGKILL a host's nova-compute. The hypervisor goes on."""
        compute = self.processes.pop(host)
        self.computes.pop(host, None)
        self._stop_guard(compute)
        compute.kill()
        self.killed.append(compute)
        return compute

    def restart_compute(self, host):
        """Kill a nova-compute and start the next one."""
        self.kill_compute(host)
        return self.start_compute(host)

    def stop_at(self, host, owner, name, after=False):
        """See :class:`~tests.functional.crashes.StopAt`."""
        return self.useFixture(crashes.StopAt(
            self.world, host, owner, name, after))

    def crash_host(self, host):
        """A host loses power. Its disks stay."""
        self.kill_compute(host)
        self.hypervisor(host).power_off()

    def revive_host(self, host):
        """A host that lost power is back, and starts its nova-compute."""
        self.hypervisor(host).power_on()
        return self.start_compute(host)

    def force_down(self, host):
        """Tell Nova that a host's nova-compute is dead."""
        service = self.api.get_services(host=host, binary='nova-compute')[0]
        self.api.put_service(service['id'], {'forced_down': True})

    def force_up(self, host):
        service = self.api.get_services(host=host, binary='nova-compute')[0]
        self.api.put_service(service['id'], {'forced_down': False})

    def hypervisor(self, host):
        """See :class:`~tests.functional.hypervisor.Hypervisor`."""
        return self.world.hypervisors[host]

    def audit(self, host):
        """Run one resource audit of a host, in the caller's thread."""
        self.processes[host].manager.update_available_resource(
            context.get_admin_context())
        # an audit logs what stops it, and raises nothing
        self.assertNotIn('Error updating resources', self.logged())

    def must(self, condition, violation, observed):
        """Require a condition of a property.

        :param violation: what it is when it is not so, in a few words
        :param observed: what was seen
        :raises tests.functional.properties.Violation: when it is not so
        """
        if not condition:
            raise properties.Violation(violation, observed)
