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

"""Many instances, without the time that it takes to boot them."""

from oslo_utils import uuidutils

from nova import context as nova_context
from nova.network import model
from nova import objects

DOMAIN = """
<domain type='kvm'>
  <name>instance-%(uuid)s</name>
  <uuid>%(uuid)s</uuid>
  <memory>524288</memory>
  <vcpu>1</vcpu>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/>
      <source file='/instances/%(uuid)s/disk'/>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>
"""


class Instances(object):
    """Of a :class:`tests.functional.cloud.CloudTestCase`."""

    def add_instances(self, count, host, running=True):
        """Write instances of a host down, and let their guests run.

        :param count: how many
        :param host: its name
        :param running: whether there are guests, with one disk each
        :returns: their UUIDs
        """
        cell = self.cell_mappings['cell1']
        tracker = self.processes[host].manager.rt
        node = {}
        if 'compute_id' in objects.Instance.fields:
            node['compute_id'] = tracker.compute_nodes[host].id
        flavor = objects.Flavor.get_by_name(
            nova_context.get_admin_context(), 'm1.tiny')
        added = []
        with nova_context.target_cell(
                nova_context.get_admin_context(), cell) as context:
            for _ in range(count):
                added.append(uuidutils.generate_uuid())
                objects.Instance(
                    context, uuid=added[-1], host=host, node=host,
                    flavor=flavor, vm_state='active', task_state=None,
                    power_state=1, project_id='project', user_id='user',
                    memory_mb=flavor.memory_mb, vcpus=flavor.vcpus,
                    root_gb=flavor.root_gb, ephemeral_gb=0,
                    instance_type_id=flavor.id, system_metadata={},
                    numa_topology=None, old_flavor=None, new_flavor=None,
                    info_cache=objects.InstanceInfoCache(
                        network_info=model.NetworkInfo()),
                    **node).create()
                if running:
                    domain = self.hypervisor(host).run(
                        DOMAIN % {'uuid': added[-1]})
                    domain.persistent = True
        return added
