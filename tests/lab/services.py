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


"""The OpenStack services of a lab: their files, databases, processes."""

import concurrent.futures
import hashlib
import os
import sys

from tests.lab import broker
from tests.lab import configuration
from tests.lab import database
from tests.lab import processes
from tests.lab import settings as lab_settings
from tests.lab import virtualenvs

#: Seconds for the schema of a database, on a small machine.
SYNC_TIMEOUT = 600


class Services(object):
    """Of one lab.

    :param settings: of the lab
    :param venvs: Virtualenvs
    :param machines: {host name: Namespace}
    :param server: Database
    """

    def __init__(self, settings, venvs, machines, server):
        self._settings = settings
        self._nova = venvs.nova
        self._control = venvs.control
        self._pins = (venvs.nova_pins, virtualenvs.CONTROL_PINS)
        self._server = server
        self._machine = machines[lab_settings.CONTROLLER]
        etc = settings.etc
        self._placement_conf = etc / 'placement' / 'placement.conf'
        self._glance_conf = etc / 'glance' / 'glance-api.conf'
        self._nova_conf = etc / 'nova.conf'
        self.placement = self._wsgi(
            'placement', self._control, 'placement.wsgi.api',
            lab_settings.PLACEMENT_PORT,
            OS_PLACEMENT_CONFIG_DIR=str(self._placement_conf.parent))
        self.glance = self._wsgi(
            'glance', self._control, 'glance.wsgi.api',
            lab_settings.GLANCE_PORT,
            OS_GLANCE_CONFIG_DIR=str(self._glance_conf.parent))
        self.neutron = self._process(
            'neutron-stub', [sys.executable, lab_settings.PROGRAMS /
                             'neutron_stub.py', lab_settings.NEUTRON_PORT])
        self.conductor = self._nova_process('nova-conductor')
        self.scheduler = self._nova_process('nova-scheduler')
        self.computes = {
            host: processes.Process(
                'nova-compute-' + host,
                [self._nova / 'bin' / 'nova-compute', '--config-file',
                 self.compute_conf(host)],
                settings.state / 'pid', settings.logs,
                wrap=machines[host].enter, env=self._quiet())
            for host in lab_settings.COMPUTE_HOSTS}
        self._api = None

    @property
    def api(self):
        """nova-api; how it is run is known when its virtualenv is there."""
        if self._api is None:
            # the command that serves it by itself ended with eventlet
            if list(self._nova.glob(
                    'lib/python3*/site-packages/nova/wsgi/osapi_compute.py')):
                self._api = self._wsgi(
                    'nova-api', self._nova, 'nova.wsgi.osapi_compute',
                    lab_settings.NOVA_PORT,
                    OS_NOVA_CONFIG_DIR=str(self._settings.etc))
            else:
                self._api = self._nova_process('nova-api-os-compute',
                                               'nova-api')
        return self._api

    def all(self):
        return [self.placement, self.glance, self.neutron, self.conductor,
                self.scheduler, self.api] + list(self.computes.values())

    def compute_conf(self, host):
        """Path of the configuration file of one nova-compute."""
        return self._settings.etc / ('nova-%s.conf' % host)

    # ---- processes

    def _process(self, name, argv, **env):
        return processes.Process(
            name, argv, self._settings.state / 'pid', self._settings.logs,
            wrap=self._machine.enter, env=dict(self._quiet(), **env))

    def _wsgi(self, name, venv, module, port, **env):
        return self._process(
            name, [venv / 'bin' / 'python', lab_settings.PROGRAMS /
                   'serve_wsgi.py', module, port],
            PYTHONPATH=str(lab_settings.PROGRAMS), **env)

    def _nova_process(self, program, name=None):
        return self._process(
            name or program, [self._nova / 'bin' / program, '--config-file',
                              self._nova_conf],
            PYTHONPATH=str(lab_settings.PROGRAMS))

    def _quiet(self):
        return {'PYTHONWARNINGS': 'ignore', 'PYTHONUNBUFFERED': '1',
                'PATH': '/usr/sbin:/sbin:' + os.environ['PATH']}

    # ---- files

    def write(self):
        """Write all configuration files but those of nova-compute."""
        settings = self._settings
        controller = lab_settings.CONTROLLER
        for folder in (self._placement_conf.parent, self._glance_conf.parent):
            folder.mkdir()
        configuration.write(
            self._nova_conf,
            configuration.nova(settings, self._nova, controller),
            configuration.nova_control(settings))
        configuration.write_paste(
            self._nova / 'etc' / 'nova' / 'api-paste.ini',
            settings.etc / 'api-paste.ini')
        configuration.write(self._placement_conf, configuration.placement())
        configuration.write(self._glance_conf,
                            configuration.glance(settings))
        configuration.write_paste(
            self._control / 'etc' / 'glance' / 'glance-api-paste.ini',
            self._glance_conf.parent / 'glance-api-paste.ini')

    def write_compute(self, host):
        """Write the file of one nova-compute; it is read when it starts."""
        settings = self._settings
        configuration.write(
            self.compute_conf(host),
            configuration.nova(settings, self._nova, host),
            configuration.nova_compute(settings, host),
            settings.compute_options)

    # ---- databases

    def _manage(self, venv, program, *argv, **env):
        self._machine.run(venv / 'bin' / program, *argv, env=dict(
            self._quiet(), **env), timeout=SYNC_TIMEOUT)

    def sync_nova(self):
        """Make Nova's tables and its cells."""
        self._once('nova-' + self._settings.release, self._pins[0],
                   ('nova', 'nova_api', 'nova_cell0'), self._sync_nova)

    def _sync_nova(self):
        def manage(*argv):
            self._manage(self._nova, 'nova-manage', '--config-file',
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

    def sync_placement(self):
        self._once(
            'placement', self._pins[1], ('placement',),
            lambda: self._manage(
                self._control, 'placement-manage', '--config-file',
                self._placement_conf, 'db', 'sync'))

    def sync_glance(self):
        self._once(
            'glance', self._pins[1], ('glance',),
            lambda: self._manage(
                self._control, 'glance-manage', '--config-file',
                self._glance_conf, 'db_sync'))

    def _once(self, name, pins, databases, sync):
        """Make tables, or take them as they were made by an earlier lab.

        The hundreds of migrations of an old release take minutes.
        """
        key = hashlib.sha256()
        key.update(pins.read_bytes())
        # the cells have these addresses
        key.update(database.url(name).encode() + broker.URL.encode())
        kept = self._settings.root / 'schemas' / (
            '%s-%s.sql' % (name, key.hexdigest()[:12]))
        if kept.exists():
            self._server.load(kept)
            return
        sync()
        kept.parent.mkdir(exist_ok=True)
        self._server.dump(databases, kept)
