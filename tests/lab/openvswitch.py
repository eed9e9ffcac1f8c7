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

"""Open vSwitch in user space: a switch for each host, no kernel module."""

from tests.lab import namespaces
from tests.lab import processes
from tests.lab import waiting

SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema'
RUN = '/run/openvswitch'
#: Where Neutron's agent and os-vif reach the switch's database by default.
PORT = 6640
#: The bridge that Neutron's agent makes, with the guests' devices; and the one
#: that leads out of the host.
INTEGRATION = 'br-int'
PHYSICAL = 'br-phys'
#: Interface of the host that is a port of the latter.
UPLINK = 'eth1'
#: netdev: packets are switched by ovs-vswitchd itself.
DATAPATH = 'netdev'
#: Neutron names the device of a port after the beginning of its uuid.
DEVICE_LENGTH = 14


def device(port):
    """Name of the tap device of a Neutron port."""
    return ('tap' + port)[:DEVICE_LENGTH]


class Switch(object):
    """Of one host.

    :param settings: of the lab
    :param name: of the host
    :param machine: its Namespace
    """

    def __init__(self, settings, name, machine):
        self._name = name
        self._machine = machine
        self._folder = settings.storage(name) / 'openvswitch'
        self._database = self._folder / 'conf.db'

        def process(program, *argv):
            return processes.Process(
                '%s-%s' % (program, name),
                [program] + list(argv) + [
                    '-vconsole:info', '-vsyslog:off',
                    '--unixctl=%s/%s.ctl' % (RUN, program)],
                settings.state / 'pid', settings.logs, wrap=machine.enter,
                env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'})
        socket = 'unix:%s/db.sock' % RUN
        self.ovsdb = process(
            'ovsdb-server', str(self._database), '--remote=p' + socket,
            '--remote=ptcp:%d:127.0.0.1' % PORT)
        self.vswitchd = process('ovs-vswitchd', socket)

    def processes(self):
        return [self.ovsdb, self.vswitchd]

    def up(self):
        """Start it, with a bridge that leads out of the host."""
        run = self._folder / 'run'
        run.mkdir(parents=True)
        self._machine.run('mkdir', '-p', RUN)
        self._machine.mount(run, RUN)
        self._machine.run('ovsdb-tool', 'create', self._database, SCHEMA)
        self.ovsdb.start()
        waiting.wait_until(
            lambda: self._machine.listens(PORT),
            'ovsdb-server of %s listens; see %s' % (
                self._name, self.ovsdb.log), 30)
        self._control('--no-wait', 'init')
        self.vswitchd.start()
        self._machine.run('ip', 'link', 'set', UPLINK, 'up')
        self._control(
            'add-br', PHYSICAL, '--',
            'set', 'bridge', PHYSICAL, 'datapath_type=' + DATAPATH, '--',
            'add-port', PHYSICAL, UPLINK)

    def _control(self, *argv):
        return self._machine.run('ovs-vsctl', '--timeout=20', *argv)

    def devices(self):
        """Names of the guests' devices that the switch has."""
        try:
            ports = self._control('list-ports', INTEGRATION).split()
        except namespaces.CommandFailed:
            # the agent has not made the bridge yet
            return []
        return [name for name in ports if name.startswith('tap')]

    def forget(self, name):
        """Remove a device."""
        self._control('--if-exists', 'del-port', INTEGRATION, name)
