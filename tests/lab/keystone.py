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

"""Keystone: who may do what, and where the services are."""

import base64
import os

from tests.lab import clients
from tests.lab import configuration
from tests.lab import database
from tests.lab import identity
from tests.lab import settings as lab_settings
from tests.lab import virtualenvs
from tests.lab import waiting

#: {user: its service's (type, port, path)}
SERVICES = {
    'nova': ('compute', lab_settings.NOVA_PORT, '/v2.1'),
    'placement': ('placement', lab_settings.PLACEMENT_PORT, ''),
    'glance': ('image', lab_settings.GLANCE_PORT, ''),
    'neutron': ('network', lab_settings.NEUTRON_PORT, ''),
    'cinder': ('block-storage', lab_settings.CINDER_PORT, '/v3'),
}
#: What a service's user needs: Neutron and Nova take some requests from
#: services only, and Nova's own are those of an administrator.
ROLES = ('admin', identity.SERVICE)
#: Seconds that a token is good for; longer than tests take.
EXPIRATION = 86400


class Keystone(object):
    """Of one lab.

    :param settings: of the lab
    :param venv: folder of its virtualenv
    :param launcher: Launcher
    :param schemas: Schemas
    :param machine: Namespace of the controller
    """

    def __init__(self, settings, venv, launcher, schemas, machine):
        self._settings = settings
        self._venv = venv
        self._launcher = launcher
        self._schemas = schemas
        self._machine = machine
        self._token = None
        self._conf = settings.etc / 'keystone' / 'keystone.conf'
        self.process = launcher.wsgi(
            'keystone', venv, 'keystone.wsgi.api',
            lab_settings.KEYSTONE_PORT,
            OS_KEYSTONE_CONFIG_DIR=str(self._conf.parent))
        self._client = clients.Client(
            machine, lab_settings.KEYSTONE_PORT, '/v3', token=self.token)

    def processes(self):
        return [self.process]

    def write(self):
        """Write its configuration and its keys."""
        keys = self._settings.storage('keystone') / 'keys'
        keys.mkdir(parents=True, mode=0o700)
        # one that is to become, and one that is the primary key
        for name in ('0', '1'):
            (keys / name).write_bytes(
                base64.urlsafe_b64encode(os.urandom(32)))
        self._conf.parent.mkdir()
        configuration.write(self._conf, {
            'DEFAULT': configuration.LOGGING,
            'database': {'connection': database.url('keystone')},
            'fernet_tokens': {'key_repository': keys},
            'fernet_receipts': {'key_repository': keys},
            'token': {'expiration': EXPIRATION},
            # the fewest: every request of a service costs one hash
            'identity': {'password_hash_rounds': 4},
        })

    def up(self):
        """Make the tables, serve the API, fill in users and services."""
        self._schemas.once('keystone', virtualenvs.NETWORK_PINS,
                           ('keystone',), self._sync)
        self.process.start()
        waiting.wait_until(
            lambda: self._machine.listens(lab_settings.KEYSTONE_PORT),
            'Keystone listens; see %s' % self.process.log, 120)
        self._fill()

    def _sync(self):
        def manage(*argv):
            self._launcher.manage(self._venv, 'keystone-manage',
                                  '--config-file', self._conf, *argv)
        manage('db_sync')
        url = self._settings.url(lab_settings.KEYSTONE_PORT) + '/v3'
        manage('bootstrap', '--bootstrap-password', identity.PASSWORD,
               '--bootstrap-public-url', url,
               '--bootstrap-internal-url', url,
               '--bootstrap-region-id', identity.REGION)

    def _fill(self):
        """Make a user, a service and its endpoints for each service."""
        def make(kind, **values):
            return self._client.call(
                'POST', '/%ss' % kind, {kind: values})[kind]['id']
        roles = {role['name']: role['id']
                 for role in self._client.get('/roles')['roles']}
        for role in ROLES:
            if role not in roles:
                roles[role] = make('role', name=role)
        project = make('project', name='service', domain_id='default')
        for name, (kind, port, path) in SERVICES.items():
            user = make('user', name=name, password=identity.PASSWORD,
                        domain_id='default')
            for role in ROLES:
                self._client.call('PUT', '/projects/%s/users/%s/roles/%s' % (
                    project, user, roles[role]))
            service = make('service', name=name, type=kind)
            for interface in ('public', 'internal'):
                make('endpoint', service_id=service, interface=interface,
                     region_id=identity.REGION,
                     url=self._settings.url(port) + path)

    def token(self):
        """A token of the administrator."""
        if self._token is None:
            anonymous = clients.Client(
                self._machine, lab_settings.KEYSTONE_PORT, '/v3', token=None)
            domain = {'id': 'default'}
            _answer, headers = anonymous.exchange('POST', '/auth/tokens', {
                'auth': {
                    'identity': {
                        'methods': ['password'],
                        'password': {'user': {
                            'name': 'admin', 'domain': domain,
                            'password': identity.PASSWORD}}},
                    'scope': {'project': {
                        'name': 'admin', 'domain': domain}}}})
            self._token = headers['X-Subject-Token']
        return self._token
