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

"""What the full form of a lab has besides: Keystone, Neutron, Cinder."""

from tests.lab import ceph
from tests.lab import cinder
from tests.lab import keystone
from tests.lab import neutron
from tests.lab import openvswitch
from tests.lab import settings as lab_settings
from tests.lab import waiting

#: The bridge that joins the hosts' switches: the network of the guests.
BRIDGE = 'lab1'
#: What must be on PATH besides, and the Debian package that has it.
PROGRAMS = {
    'ceph': 'ceph-common',
    'ceph-mgr': 'ceph-mgr',
    'ceph-mon': 'ceph-mon',
    'ceph-osd': 'ceph-osd',
    'ovs-vswitchd': 'openvswitch-switch',
}
DATABASES = ('cinder', 'keystone', 'neutron')


class Full(object):
    """The parts of one lab.

    :param settings: of the lab
    :param venvs: Virtualenvs
    :param machines: {host name: Namespace}
    :param server: Database
    :param launcher: Launcher
    :param schemas: Schemas
    """

    def __init__(self, settings, venvs, machines, server, launcher, schemas):
        self._machines = machines
        self._controller = machines[lab_settings.CONTROLLER]
        self.switches = {
            name: openvswitch.Switch(settings, name, machines[name])
            for name in lab_settings.COMPUTE_HOSTS}
        self.ceph = ceph.Ceph(settings, machines)
        self.keystone = keystone.Keystone(
            settings, venvs.network, launcher, schemas, self._controller)
        self.neutron = neutron.Neutron(
            settings, venvs.network, launcher, schemas, machines,
            self.keystone.token)
        self.cinder = cinder.Cinder(
            settings, venvs.volume, launcher, schemas, self._controller,
            server, self.ceph, self.keystone.token)

    def processes(self):
        """All of them, in the order in which they are stopped."""
        parts = [self.neutron, self.cinder, self.keystone, self.ceph]
        return [process for part in parts + list(self.switches.values())
                for process in part.processes()]

    def join_switches(self):
        """Make the network that the hosts' switches share."""
        ip = self._controller.run
        ip('ip', 'link', 'add', BRIDGE, 'type', 'bridge')
        ip('ip', 'link', 'set', BRIDGE, 'up')
        for name in self.switches:
            end = 'guests-' + name[-1]
            ip('ip', 'link', 'add', end, 'type', 'veth', 'peer', 'name',
               openvswitch.UPLINK, 'netns', self._machines[name].pid)
            ip('ip', 'link', 'set', end, 'master', BRIDGE, 'up')

    def write(self):
        """Write all configuration files."""
        for part in (self.keystone, self.neutron, self.cinder):
            part.write()

    def start(self):
        """Start Neutron and Cinder; what they need must be there."""
        for part in (self.neutron, self.cinder):
            for process in part.processes():
                process.start()

    def wait(self):
        """Wait until a server can have a port and a volume."""
        for name, port in (('Neutron', lab_settings.NEUTRON_PORT),
                           ('Cinder', lab_settings.CINDER_PORT)):
            waiting.wait_until(lambda port=port:
                               self._controller.listens(port),
                               '%s listens' % name, 180)
        hosts = set(self.switches)
        waiting.wait_until(
            lambda: set(self.neutron.hosts()) >= hosts,
            lambda: 'agents report; those of %s do' % (
                self.neutron.hosts() or 'no host'), 180, 1)
        waiting.wait_until(self.cinder.pools,
                           "Cinder's scheduler knows of storage", 180, 1)
        self.neutron.make_network()

    # ---- what servers take

    def attach(self, nova, server):
        """Give a server a volume of its own.

        :param nova: Client of Nova's API
        :returns: uuid of the volume
        """
        volume = self.cinder.create(server)
        nova.call('POST', '/servers/%s/os-volume_attachments' % server, {
            'volumeAttachment': {'volumeId': volume}})
        waiting.wait_until(
            lambda: self.cinder.status(volume) == 'in-use',
            lambda: 'volume %s is in use; it is %s' % (
                volume, self.cinder.status(volume)), 180)
        return volume

    def devices(self, server):
        """Where the devices of a server's ports may be: {tap name: port}."""
        return {openvswitch.device(port['id']): port['id']
                for port in self.neutron.ports(server)}

    def forget(self, server, devices):
        """Remove all that is left of a server that is deleted.

        :param devices: of the server, from before it was deleted
        :returns: what was there: list of texts
        """
        traces = []
        for port in self.neutron.ports(server):
            traces.append('port ' + port['id'])
            self.neutron.delete(port['id'])
        for name, switch in self.switches.items():
            for device in set(switch.devices()).intersection(devices):
                traces.append('%s on %s' % (device, name))
                switch.forget(device)
        traces += ['attachment %(id)s, %(attach_status)s, for %(host)s' % row
                   for row in self.cinder.attachments(server)]
        self.cinder.forget(server)
        return traces
