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

"""Cinder, with volumes in Ceph."""

from tests.lab import broker
from tests.lab import ceph
from tests.lab import clients
from tests.lab import configuration
from tests.lab import database
from tests.lab import identity
from tests.lab import settings as lab_settings
from tests.lab import virtualenvs
from tests.lab import waiting

#: 3.27 has attachments.
VERSION = 'volume 3.60'
BACKEND = 'ceph'


class Cinder(object):
    """Of one lab.

    :param settings: of the lab
    :param venv: folder of its virtualenv
    :param launcher: Launcher
    :param schemas: Schemas
    :param machine: Namespace of the controller
    :param server: Database
    :param storage: Ceph
    :param token: function that returns a token
    """

    def __init__(self, settings, venv, launcher, schemas, machine, server,
                 storage, token):
        self._settings = settings
        self._venv = venv
        self._launcher = launcher
        self._schemas = schemas
        self._server = server
        self._storage = storage
        self._conf = settings.etc / 'cinder' / 'cinder.conf'
        self.client = clients.Client(machine, lab_settings.CINDER_PORT, '/v3',
                                     VERSION, token)
        self._processes = [launcher.wsgi(
            'cinder-api', venv, 'cinder.wsgi.api', lab_settings.CINDER_PORT,
            '--config-file', self._conf)]
        self._processes += [
            launcher.process(program, [venv / 'bin' / program,
                                       '--config-file', self._conf])
            for program in ('cinder-scheduler', 'cinder-volume')]

    def processes(self):
        return self._processes

    def write(self):
        """Write its configuration."""
        settings = self._settings
        etc = self._conf.parent
        etc.mkdir()
        own = self._venv / 'etc' / 'cinder'
        configuration.write_paste(own / 'api-paste.ini',
                                  etc / 'api-paste.ini', settings)
        storage = settings.storage('cinder')
        storage.mkdir()
        credentials = identity.credentials(settings, 'cinder')
        configuration.write(
            self._conf, identity.middleware(settings, 'cinder'), {
                'DEFAULT': dict(
                    configuration.LOGGING,
                    host=lab_settings.CONTROLLER,
                    my_ip=lab_settings.ADDRESSES[lab_settings.CONTROLLER],
                    transport_url=broker.URL,
                    state_path=storage,
                    api_paste_config=etc / 'api-paste.ini',
                    resource_query_filters_file=own / 'resource_filters.json',
                    enabled_backends=BACKEND),
                'database': {'connection': database.url('cinder')},
                'oslo_concurrency': {'lock_path': storage / 'locks'},
                'oslo_messaging_notifications': {'driver': 'noop'},
                'coordination': {
                    'backend_url': 'file://%s' % (storage / 'coordination')},
                'service_user': dict(credentials,
                                     send_service_user_token=True),
                'nova': credentials,
                BACKEND: {
                    'volume_driver': 'cinder.volume.drivers.rbd.RBDDriver',
                    'volume_backend_name': BACKEND,
                    'rbd_pool': ceph.POOL,
                    'rbd_ceph_conf': self._storage.conf,
                    'rados_connect_timeout': 10,
                },
            })

    def sync(self):
        """Make the tables."""
        self._schemas.once(
            'cinder', virtualenvs.VOLUME_PINS, ('cinder',),
            lambda: self._launcher.manage(
                self._venv, 'cinder-manage', '--config-file', self._conf,
                'db', 'sync'))

    def pools(self):
        """Names of the pools that its scheduler knows."""
        return [pool['name'] for pool in self.client.get(
            '/scheduler-stats/get_pools')['pools']]

    # ---- volumes

    def create(self, name):
        """Make a volume of 1 GiB, and return its uuid."""
        volume = self.client.call('POST', '/volumes', {'volume': {
            'name': name, 'size': 1}})['volume']['id']
        waiting.wait_until(
            lambda: self.status(volume) == 'available',
            lambda: 'volume %s is available; it is %s' % (
                volume, self.status(volume)), 120)
        return volume

    def status(self, volume):
        """Its status; None when it is gone."""
        try:
            return self.client.get('/volumes/' + volume)['volume']['status']
        except clients.ApiError as e:
            if e.status != 404:
                raise
            return None

    def attachments(self, server):
        """All attachments of a server.

        The API does not tell of the host; the database does.

        :returns: [{id, volume_id, attach_status, host}], oldest first
        """
        return self._server.rows(
            'cinder', 'select id, volume_id, attach_status, '  # noqa: S608
            "json_value(connector, '$.host') as host from volume_attachment "
            "where instance_uuid = '%s' and not deleted "
            'order by created_at' % server)

    def forget(self, name):
        """Remove the volumes of a name, whatever they are attached to."""
        for volume in self.client.get('/volumes?name=' + name)['volumes']:
            path = '/volumes/' + volume['id']
            for attachment in self.client.get(
                    '/attachments?volume_id=' + volume['id'])['attachments']:
                self.client.call('DELETE', '/attachments/' + attachment['id'])
            self.client.call('POST', path + '/action', {'os-reset_status': {
                'status': 'available', 'attach_status': 'detached'}})
            self.client.call('DELETE', path)
