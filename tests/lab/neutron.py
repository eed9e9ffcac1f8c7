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

"""Neutron: ML2 with Open vSwitch, and its agent on each host."""

import os

from tests.lab import broker
from tests.lab import clients
from tests.lab import configuration
from tests.lab import database
from tests.lab import identity
from tests.lab import openvswitch
from tests.lab import settings as lab_settings
from tests.lab import virtualenvs

NETWORK = 'lab'
CIDR = '192.0.2.0/24'
#: What ML2 calls the network that joins the hosts.
PHYSICAL_NETWORK = 'physical'


class Neutron(object):
    """Of one lab.

    :param settings: of the lab
    :param venv: folder of its virtualenv
    :param launcher: Launcher
    :param schemas: Schemas
    :param machines: {host name: Namespace}
    :param token: function that returns a token
    """

    def __init__(self, settings, venv, launcher, schemas, machines, token):
        self._settings = settings
        self._venv = venv
        self._launcher = launcher
        self._schemas = schemas
        self._etc = settings.etc / 'neutron'
        self._conf = self._etc / 'neutron.conf'
        self.client = clients.Client(
            machines[lab_settings.CONTROLLER], lab_settings.NEUTRON_PORT,
            '/v2.0', token=token)
        self.api = launcher.wsgi(
            'neutron-api', venv, 'neutron.wsgi.api',
            lab_settings.NEUTRON_PORT, OS_NEUTRON_CONFIG_DIR=str(self._etc),
            OS_NEUTRON_CONFIG_FILES=self._conf.name)
        # what the agents talk to; the API is a program of its own
        self.rpc = launcher.process('neutron-rpc-server', [
            venv / 'bin' / 'neutron-rpc-server', '--config-file', self._conf])
        self.agents = {
            host: launcher.process(
                'neutron-openvswitch-agent-' + host,
                [venv / 'bin' / 'neutron-openvswitch-agent',
                 '--config-file', self._agent_conf(host)],
                machines[host], PATH=self._path())
            for host in lab_settings.COMPUTE_HOSTS}

    def processes(self):
        return [self.api, self.rpc] + list(self.agents.values())

    def _agent_conf(self, host):
        return self._etc / ('openvswitch-agent-%s.conf' % host)

    def _path(self):
        # the agent looks for its helpers there
        return '%s:/usr/sbin:/sbin:%s' % (self._venv / 'bin',
                                          os.environ['PATH'])

    def write(self):
        """Write the configuration of the server and of the agents."""
        settings = self._settings
        self._etc.mkdir()
        configuration.write_paste(
            self._venv / 'etc' / 'neutron' / 'api-paste.ini',
            self._etc / 'api-paste.ini', settings)
        configuration.write(
            self._conf, self._common(settings.storage('neutron')),
            identity.middleware(settings, 'neutron'), {
                'DEFAULT': {
                    'core_plugin': 'ml2',
                    'service_plugins': '',
                    'api_paste_config': self._etc / 'api-paste.ini',
                    'notify_nova_on_port_status_changes': True,
                    'notify_nova_on_port_data_changes': True,
                    'rpc_workers': 1,
                    'rpc_state_report_workers': 1,
                },
                'database': {'connection': database.url('neutron')},
                'nova': identity.credentials(settings, 'nova'),
                'ml2': {
                    'mechanism_drivers': 'openvswitch',
                    'type_drivers': 'flat,local',
                    'tenant_network_types': 'local',
                    'extension_drivers': '',
                },
                'ml2_type_flat': {'flat_networks': PHYSICAL_NETWORK},
            })
        for host in lab_settings.COMPUTE_HOSTS:
            configuration.write(
                self._agent_conf(host),
                self._common(settings.storage(host) / 'neutron'), {
                    'DEFAULT': {'host': host},
                    'ovs': {
                        'datapath_type': openvswitch.DATAPATH,
                        'bridge_mappings': '%s:%s' % (
                            PHYSICAL_NETWORK, openvswitch.PHYSICAL),
                        'ovsdb_connection': 'tcp:127.0.0.1:%d' %
                        openvswitch.PORT,
                    },
                    # it is root already: no sudo, no rootwrap
                    'agent': {'root_helper': 'env PATH=' + self._path(),
                              'tunnel_types': ''},
                    'securitygroup': {'firewall_driver': 'noop'},
                })

    @staticmethod
    def _common(storage):
        storage.mkdir(parents=True)
        return {
            'DEFAULT': dict(configuration.LOGGING, state_path=storage,
                            transport_url=broker.URL),
            'oslo_concurrency': {'lock_path': storage / 'locks'},
            'oslo_messaging_notifications': {'driver': 'noop'},
        }

    def sync(self):
        """Make the tables."""
        self._schemas.once(
            'neutron', virtualenvs.NETWORK_PINS, ('neutron',),
            lambda: self._launcher.manage(
                self._venv, 'neutron-db-manage', '--config-file', self._conf,
                'upgrade', 'head'))

    def make_network(self):
        """Make the network that guests are on."""
        network = self.client.call('POST', '/networks', {'network': {
            'name': NETWORK, 'shared': True,
            'provider:network_type': 'flat',
            'provider:physical_network': PHYSICAL_NETWORK}})['network']['id']
        self.client.call('POST', '/subnets', {'subnet': {
            'network_id': network, 'ip_version': 4, 'cidr': CIDR,
            'enable_dhcp': False}})

    def network(self):
        """Its uuid."""
        return self.client.get('/networks?name=' + NETWORK)[
            'networks'][0]['id']

    def hosts(self):
        """Names of the hosts whose agent reports."""
        return [agent['host']
                for agent in self.client.get('/agents')['agents']
                if agent['alive']]

    # ---- ports

    def ports(self, server):
        """All ports of a server, as the API describes them."""
        return self.client.get('/ports?device_id=' + server)['ports']

    def bindings(self, port):
        """All bindings of a port, as the API describes them."""
        return self.client.get('/ports/%s/bindings' % port)['bindings']

    def delete(self, port):
        self.client.call('DELETE', '/ports/' + port)
