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


"""Nova, Placement and Glance: their files, databases, processes."""

import concurrent.futures
import sys

from tests.lab import configuration
from tests.lab import database
from tests.lab import launcher as launchers
from tests.lab import processes
from tests.lab import settings as lab_settings
from tests.lab import virtualenvs


class Services(object):
    """Of one lab.

    :param settings: of the lab
    :param venvs: Virtualenvs
    :param machines: {host name: Namespace}
    :param server: Database
    :param launcher: Launcher
    :param schemas: Schemas
    """

    def __init__(self, settings, venvs, machines, server, launcher, schemas):
        self._settings = settings
        self._nova = venvs.nova
        self._control = venvs.control
        self._nova_pins = venvs.nova_pins
        self._server = server
        self._launcher = launcher
        self._schemas = schemas
        etc = settings.etc
        self._placement_conf = etc / 'placement' / 'placement.conf'
        self._glance_conf = etc / 'glance' / 'glance-api.conf'
        self._nova_conf = etc / 'nova.conf'
        self.placement = launcher.wsgi(
            'placement', self._control, 'placement.wsgi.api',
            lab_settings.PLACEMENT_PORT,
            OS_PLACEMENT_CONFIG_DIR=str(self._placement_conf.parent))
        self.glance = launcher.wsgi(
            'glance', self._control, 'glance.wsgi.api',
            lab_settings.GLANCE_PORT,
            OS_GLANCE_CONFIG_DIR=str(self._glance_conf.parent))
        self._stubs = [] if settings.full else [launcher.process(
            'neutron-stub', [sys.executable, lab_settings.PROGRAMS /
                             'neutron_stub.py', lab_settings.NEUTRON_PORT])]
        self.conductor = self._nova_process('nova-conductor')
        self.scheduler = self._nova_process('nova-scheduler')
        self.computes = {
            host: processes.Process(
                'nova-compute-' + host,
                [self._nova / 'bin' / 'nova-compute', '--config-file',
                 self.compute_conf(host)],
                settings.state / 'pid', settings.logs,
                wrap=machines[host].enter, env=launchers.quiet())
            for host in lab_settings.COMPUTE_HOSTS}
        self._api = None

    @property
    def api(self):
        """nova-api; how it is run is known when its virtualenv is there."""
        if self._api is None:
            # the command that serves it by itself ended with eventlet
            if list(self._nova.glob(
                    'lib/python3*/site-packages/nova/wsgi/osapi_compute.py')):
                self._api = self._launcher.wsgi(
                    'nova-api', self._nova, 'nova.wsgi.osapi_compute',
                    lab_settings.NOVA_PORT,
                    OS_NOVA_CONFIG_DIR=str(self._settings.etc))
            else:
                self._api = self._nova_process('nova-api-os-compute',
                                               'nova-api')
        return self._api

    def all(self):
        return self._stubs + [
            self.placement, self.glance, self.conductor, self.scheduler,
            self.api] + list(self.computes.values())

    def compute_conf(self, host):
        """Path of the configuration file of one nova-compute."""
        return self._settings.etc / ('nova-%s.conf' % host)

    # ---- processes

    def _nova_process(self, program, name=None):
        return self._launcher.process(
            name or program, [self._nova / 'bin' / program, '--config-file',
                              self._nova_conf],
            PYTHONPATH=str(lab_settings.PROGRAMS))

    # ---- files

    def write(self):
        """Write all configuration files but those of nova-compute."""
        settings = self._settings
        controller = lab_settings.CONTROLLER
        for folder in (self._placement_conf.parent, self._glance_conf.parent):
            folder.mkdir()
        configuration.write(
            self._nova_conf,
            *self._nova_parts(controller),
            configuration.nova_control(settings))
        configuration.write_paste(
            self._nova / 'etc' / 'nova' / 'api-paste.ini',
            settings.etc / 'api-paste.ini', settings)
        configuration.write(self._placement_conf,
                            configuration.placement(settings))
        configuration.write(self._glance_conf,
                            configuration.glance(settings))
        configuration.write_paste(
            self._control / 'etc' / 'glance' / 'glance-api-paste.ini',
            self._glance_conf.parent / 'glance-api-paste.ini', settings)

    def write_compute(self, host):
        """Write the file of one nova-compute; it is read when it starts."""
        settings = self._settings
        configuration.write(
            self.compute_conf(host),
            *self._nova_parts(host),
            configuration.nova_compute(settings, host),
            settings.compute_options)

    def _nova_parts(self, host):
        parts = [configuration.nova(self._settings, self._nova, host)]
        if self._settings.full:
            parts.append(configuration.nova_full(self._settings, self._nova))
        return parts

    # ---- databases

    def sync_nova(self):
        """Make Nova's tables and its cells."""
        self._schemas.once(
            'nova-' + self._settings.release, self._nova_pins,
            ('nova', 'nova_api', 'nova_cell0'), self._sync_nova)

    def _sync_nova(self):
        def manage(*argv):
            self._launcher.manage(self._nova, 'nova-manage', '--config-file',
                                  self._nova_conf, *argv)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            cell = pool.submit(manage, 'db', 'sync', '--local_cell')
            manage('api_db', 'sync')
            manage('cell_v2', 'map_cell0', '--database_connection',
                   database.url('nova_cell0'))
            manage('cell_v2', 'create_cell', '--name', 'cell1')
            cell.result()
        # the same tables; making them once more takes as long again
        self._server.copy('nova', 'nova_cell0')

    def discover(self):
        """Map the hosts that have a record to their cell.

        nova-scheduler can be told to do that, and may let a minute pass
        before the first time.
        """
        self._launcher.manage(self._nova, 'nova-manage', '--config-file',
                              self._nova_conf, 'cell_v2', 'discover_hosts')

    def sync_placement(self):
        self._schemas.once(
            'placement', virtualenvs.CONTROL_PINS, ('placement',),
            lambda: self._launcher.manage(
                self._control, 'placement-manage', '--config-file',
                self._placement_conf, 'db', 'sync'))

    def sync_glance(self):
        self._schemas.once(
            'glance', virtualenvs.CONTROL_PINS, ('glance',),
            lambda: self._launcher.manage(
                self._control, 'glance-manage', '--config-file',
                self._glance_conf, 'db_sync'))
