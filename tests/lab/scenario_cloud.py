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

"""The lab as the cloud of ``tests/scenarios``."""

from keystoneauth1.identity import v3
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from openstack import connection
import requests
from requests import adapters

from tests.lab import identity
from tests.lab import progress
from tests.lab import settings as lab_settings
from tests.scenarios import cloud

#: Seconds for a command on a host.
COMMAND = 120

#: {service: (port, path)}
_SERVICES = {'compute': (lab_settings.NOVA_PORT, '/v2.1'),
             'image': (lab_settings.GLANCE_PORT, ''),
             'placement': (lab_settings.PLACEMENT_PORT, '')}


class _Inside(adapters.HTTPAdapter):
    """Sends requests from inside of a machine's network."""

    def __init__(self, machine):
        super(_Inside, self).__init__()
        self._machine = machine

    def send(self, *args, **kwargs):
        with self._machine.network():
            return super(_Inside, self).send(*args, **kwargs)


class LabCloud(cloud.Cloud):
    """A lab that is up.

    :param lab: a :class:`tests.lab.lab.Lab`
    """

    flavor = 'lab'
    image = 'guest'

    def __init__(self, lab):
        self._lab = lab
        self.hosts = lab_settings.COMPUTE_HOSTS
        self.connection = self._connect()
        full = lab.parts.full
        if full:
            self.networks = [{'uuid': full.neutron.network()}]

    def _connect(self):
        address = lab_settings.ADDRESSES[lab_settings.CONTROLLER]
        http = requests.Session()
        http.mount('http://', _Inside(self._lab.parts.controller))
        if self._lab.parts.full:
            auth = v3.Password(
                'http://%s:%d/v3' % (address, lab_settings.KEYSTONE_PORT),
                username='admin', password=identity.PASSWORD,
                project_name='admin', user_domain_id='default',
                project_domain_id='default')
        else:
            auth = token_endpoint.Token('http://' + address,
                                        lab_settings.TOKEN)
        return connection.Connection(
            session=session.Session(auth, session=http),
            **{name + '_endpoint_override': 'http://%s:%d%s' % (
                address, port, path)
               for name, (port, path) in _SERVICES.items()})

    def run(self, host, *argv):
        return self._lab.hosts[host].machine.run(*argv, timeout=COMMAND)

    def kill_compute(self, host):
        self._lab.kill_compute(host)

    def start_compute(self, host):
        self._lab.start_compute(host)

    def say(self, text):
        progress.say(text)
