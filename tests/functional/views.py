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

"""What Nova has written down of a cloud, and what is true of it."""

import collections

from nova import context
from nova import exception
from nova import objects

from tests.functional import releases

#: What Nova says of a server.
NovaSays = collections.namedtuple('NovaSays', 'vm_state task_state host')


class Views(object):
    """A part of :class:`~tests.functional.cloud.CloudTestCase`."""

    def context_of(self, server):
        """A request context that reads from the server's cell."""
        return context.get_admin_context()

    def context_on(self, host):
        """A request context that reads from a host's cell."""
        return context.get_admin_context()

    def instance(self, server):
        return objects.Instance.get_by_uuid(
            self.context_of(server), server['id'])

    def nova_says(self, server):
        """Nova's picture of a server, from its database."""
        try:
            instance = self.instance(server)
        except exception.InstanceNotFound:
            # what found no host is in the database of no host's cell
            shown = self.api.get_server(server['id'])
            return NovaSays(*(shown[name] for name in (
                'OS-EXT-STS:vm_state', 'OS-EXT-STS:task_state',
                'OS-EXT-SRV-ATTR:host')))
        return NovaSays(instance.vm_state, instance.task_state, instance.host)

    def migrations(self, server):
        """A server's migration records, the oldest first."""
        return sorted(objects.MigrationList.get_by_filters(
            self.context_of(server), {'instance_uuid': server['id']}),
            key=lambda migration: migration.id)

    def migration_statuses(self, server):
        """[(destination, status)], the oldest first."""
        return [(m.dest_compute, m.status) for m in self.migrations(server)]

    def where(self, server):
        """Where the guest is: {host: 'running' | 'paused' | 'shutoff'}."""
        return self.world.where(server['id'])

    def disks(self, server):
        """Where the server has a disk: {host: what is on it}."""
        found = {host: h.disks.get(server['id'])
                 for host, h in self.world.hypervisors.items()}
        return {host: disk for host, disk in found.items() if disk}

    def running_on(self, server):
        """The hosts where the guest's QEMU runs."""
        return [host for host, state in self.where(server).items()
                if state == 'running']

    def devices(self, host):
        """{address: (status, instance UUID)} of a host's virtual functions.

        What Nova's database says.
        """
        ctxt = self.context_on(host)
        node = objects.ComputeNode.get_first_node_by_host_for_old_compat(
            ctxt, host)
        return {device.address: (device.status, device.instance_uuid)
                for device in objects.PciDeviceList.get_by_compute_node(
                    ctxt, node.id) if device.dev_type == 'type-VF'}

    def devices_of_guest(self, host, server):
        """The PCI devices in the XML of a guest on a host."""
        domain = self.hypervisor(host).domains.get(server['id'])
        return domain.pci_addresses() if domain is not None else []

    def pinned_cpus(self, host):
        """The CPUs of a host that guests are pinned to, says Nova."""
        ctxt = context.get_admin_context()
        node = objects.ComputeNode.get_first_node_by_host_for_old_compat(
            ctxt, host)
        topology = objects.NUMATopology.obj_from_db_obj(node.numa_topology)
        return sorted(cpu for cell in topology.cells
                      for cpu in cell.pinned_cpus)

    def footprint(self, server):
        """All that an instance has, everywhere, by whoever keeps it.

        What a migration may change for good is left out: identities and
        numbers stay, hosts' names do not.

        :returns: a dict that two moments can be compared by
        """
        migrations = self.migrations(server)
        found = {
            'nova': self.nova_says(server),
            'guest': self.where(server),
            'disks': self.disks(server),
            'allocations': self.allocations(server['id']),
            "migrations' allocations": self._allocations_of(migrations),
            'open records': [(migration.dest_compute, migration.status)
                             for migration in migrations
                             if migration.status not in (
                                 'completed', 'cancelled', 'failed',
                                 'error')],
            'bindings': {
                port: releases.port_bindings(self.neutron, port)
                for port in self.ports(server)},
            'migration context': self._has_migration_context(server),
            'devices': {host: self._devices_of(host, server)
                        for host in self.processes},
        }
        if self.cinder is not None:
            found['attachments'] = {
                bdm.volume_id: (bdm.attachment_id,
                                releases.volume_attachments(
                                    self.cinder, bdm.volume_id))
                for bdm in self._volume_bdms(server)}
        return found

    def _allocations_of(self, migrations):
        found = {migration.id: self.allocations(migration.uuid)
                 for migration in migrations}
        return {number: allocations for number, allocations in found.items()
                if allocations}

    def ports(self, server):
        """The IDs of a server's ports."""
        return sorted(port['id'] for port in self.neutron._ports.values()
                      if port.get('device_id') == server['id'])

    def _volume_bdms(self, server):
        return [bdm for bdm in
                objects.BlockDeviceMappingList.get_by_instance_uuid(
                    context.get_admin_context(), server['id'])
                if bdm.is_volume]

    def _has_migration_context(self, server):
        return self.instance(server).migration_context is not None

    def _devices_of(self, host, server):
        return sorted(address for address, (_, owner) in
                      self.devices(host).items() if owner == server['id'])

    def allocations(self, consumer):
        """What a consumer has in Placement: {host: resources}."""
        api = releases.placement(self)
        found = api.get('/allocations/%s' % consumer).body['allocations']
        return {api.get('/resource_providers/%s' % provider).body['name']:
                allocation['resources']
                for provider, allocation in found.items()}
