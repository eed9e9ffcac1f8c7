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


"""Brings a lab up, and takes it down without leaving anything behind."""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import shutil
import signal
import time

from tests.lab import accelerator
from tests.lab import broker
from tests.lab import clients
from tests.lab import database
from tests.lab import full
from tests.lab import guest
from tests.lab import host
from tests.lab import launcher as launchers
from tests.lab import namespaces
from tests.lab import progress
from tests.lab import schemas as schema_store
from tests.lab import services
from tests.lab import settings as lab_settings
from tests.lab import virtualenvs
from tests.lab import waiting

#: What must be on PATH, and the Debian package that has it.
PROGRAMS = {
    'ip': 'iproute2',
    'libvirtd': 'libvirt-daemon-system',
    'mariadbd': 'mariadb-server',
    'nsenter': 'util-linux',
    'pkg-config': 'pkg-config',
    'qemu-img': 'qemu-utils',
    'qemu-system-x86_64': 'qemu-system-x86',
    'virsh': 'libvirt-clients',
    broker.SERVER: 'rabbitmq-server',
}
BRIDGE = 'lab0'
#: Settings that a lab has for as long as it is up.
KEPT = ('bandwidth', 'compute_options', 'guard', 'virt_type')
#: Microversion 2.79 is Train's last one.
NOVA_VERSION = 'compute 2.79'
PLACEMENT_VERSION = 'placement 1.31'
#: Train's nova-api ends every request with 500 there.
FULL_FROM = (21, 0)
#: How many folders of logs are kept of each release.
LOGS_KEPT = 5


class CannotRun(Exception):
    """The lab cannot be here; the text says what to do."""


class Deployment(object):
    """All parts of a lab.

    :param settings: Settings
    """

    def __init__(self, settings):
        self.settings = settings
        self.venvs = virtualenvs.Virtualenvs(settings)
        pids = settings.state / 'pid'
        self.machines = {
            name: namespaces.Namespace(name, pids, settings.logs)
            for name in (lab_settings.CONTROLLER,) +
            lab_settings.COMPUTE_HOSTS}
        self.controller = self.machines[lab_settings.CONTROLLER]
        self.database = database.Database(
            settings, self.controller, database.DATABASES +
            (full.DATABASES if settings.full else ()))
        self.broker = broker.Broker(settings, self.controller)
        self.hosts = {
            name: host.ComputeHost(settings, name, self.machines[name],
                                   self.venvs.nova / 'bin' / 'python')
            for name in lab_settings.COMPUTE_HOSTS}
        common = (settings, self.venvs, self.machines, self.database,
                  launchers.Launcher(settings, self.controller),
                  schema_store.Schemas(settings, self.database))
        self.services = services.Services(*common)
        #: Full, or None in the light form
        self.full = full.Full(*common) if settings.full else None
        token = self.full.keystone.token if self.full else clients.open_token
        self.nova = clients.Client(self.controller, lab_settings.NOVA_PORT,
                                   '/v2.1', NOVA_VERSION, token)
        self.placement = clients.Client(
            self.controller, lab_settings.PLACEMENT_PORT,
            version=PLACEMENT_VERSION, token=token)
        self.glance = clients.Client(
            self.controller, lab_settings.GLANCE_PORT, token=token)

    def processes(self):
        """All services but MariaDB, RabbitMQ and the hosts' libvirtd."""
        return self.services.all() + (
            self.full.processes() if self.full else [])

    @property
    def is_up(self):
        """Whether all of it runs, started by this program or another."""
        return (self._ready.exists() and
                all(m.exists for m in self.machines.values()) and
                all(p.alive for p in self.processes()))

    @property
    def _ready(self):
        return self.settings.state / 'ready'

    def lock(self):
        """Keep other programs away from this lab until this one ends.

        :raises CannotRun: another program has it
        """
        path = self.settings.root / (self.settings.name + '.lock')
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = path.open('w')
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotRun(
                'another program brings this lab up or down, or runs tests '
                'on it; tests run one at a time (stestr run --serial)')

    def remember(self):
        """Keep what another program has to know of this lab."""
        self._ready.write_text(json.dumps(
            {name: getattr(self.settings, name) for name in KEPT}))

    def recall(self):
        """Take the settings from a lab that is up."""
        kept = json.loads(self._ready.read_text())
        for name in KEPT:
            setattr(self.settings, name, kept[name])

    # ---- up

    def up(self):
        """Bring everything up from nothing.

        :raises CannotRun: something is missing here
        """
        begun = time.monotonic()
        self._check()
        progress.say('nova %s, %s form, folder %s' % (
            self.settings.release, self.settings.form, self.settings.state))
        self.down()
        self.venvs.make()
        self._folders()
        progress.say('logs: %s' % os.path.realpath(str(self.settings.logs)))
        try:
            self._up()
        except BaseException:
            progress.say('FAILED; logs: %s' % os.path.realpath(
                str(self.settings.logs)))
            raise
        self.remember()
        progress.say('up in %d s' % (time.monotonic() - begun))

    def _check(self):
        if os.geteuid():
            raise CannotRun('the lab needs root: it makes namespaces')
        if self.full and self.settings.version < FULL_FROM:
            raise CannotRun('nova %s does not run with the services of the '
                            'full form' % self.settings.release)
        path = '/usr/sbin:/sbin:' + os.environ['PATH']
        programs = dict(PROGRAMS, **(full.PROGRAMS if self.full else {}))
        missing = [package for program, package in sorted(programs.items())
                   if not shutil.which(program, path=path)]
        if missing:
            raise CannotRun('missing programs; apt-get install ' +
                            ' '.join(missing))

    def _folders(self):
        settings = self.settings
        kept = settings.root / 'logs'
        logs = kept / (settings.name + time.strftime('-%Y%m%d-%H%M%S'))
        logs.mkdir(parents=True)
        for old in sorted(kept.glob(settings.name + '-2*'))[:-LOGS_KEPT]:
            shutil.rmtree(str(old))
        settings.state.mkdir(parents=True)
        settings.logs.symlink_to(logs)
        for folder in (settings.etc, settings.state / 'pid',
                       settings.storage(lab_settings.CONTROLLER)):
            folder.mkdir()

    def _up(self):
        image = self.settings.images / 'guest.raw'
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            progress.say('namespaces: %s' % ', '.join(self.machines))
            self._network()
            progress.say('MariaDB, RabbitMQ, libvirtd of each host, image of '
                         'the guest')
            jobs = [pool.submit(self.broker.up),
                    pool.submit(guest.make_image, image),
                    pool.submit(self._choose_virt_type)]
            jobs += [pool.submit(h.up) for h in self.hosts.values()]
            self.services.write()
            if self.full:
                progress.say('Open vSwitch of each host, Ceph')
                jobs += [pool.submit(s.up)
                         for s in self.full.switches.values()]
                jobs.append(pool.submit(self.full.ceph.up))
                self.full.write()
            self.database.up()
            progress.say('database schemas')
            nova = pool.submit(self.services.sync_nova)
            if self.full:
                progress.say('Keystone')
                self.full.keystone.up()
                jobs.append(pool.submit(self.full.neutron.sync))
                jobs.append(pool.submit(self.full.cinder.sync))
            jobs.append(pool.submit(self._glance_up, image))
            jobs.append(pool.submit(self._placement_up))
            nova.result()
            for job in jobs:
                job.result()
            for name in self.hosts:
                self.services.write_compute(name)
            if self.full:
                progress.say('Neutron, Cinder')
                self.full.start()
            progress.say('Nova: API, conductor, scheduler, three computes')
            for service in self.services.all():
                if not service.alive:
                    service.start()
            self._wait_for_computes()
            if self.full:
                progress.say('network; agents and storage report')
                self.full.wait()

    def _choose_virt_type(self):
        if self.settings.virt_type is None:
            self.settings.virt_type = accelerator.virt_type(
                self.settings.version)
        progress.say('guests run on %s' % self.settings.virt_type)

    def _network(self):
        settings = self.settings
        names = settings.etc / 'hosts'
        names.write_text('127.0.0.1 localhost\n' + ''.join(
            '%s %s\n' % (address, name)
            for name, address in lab_settings.ADDRESSES.items()))
        for machine in self.machines.values():
            machine.create()
            machine.mount(names, '/etc/hosts')
        ip = self._ip
        ip('link', 'add', BRIDGE, 'type', 'bridge')
        for name, machine in self.machines.items():
            if name != lab_settings.CONTROLLER:
                ip('link', 'add', name, 'type', 'veth', 'peer', 'name',
                   'eth0', 'netns', machine.pid)
                ip('link', 'set', name, 'master', BRIDGE, 'up')
            device = BRIDGE if name == lab_settings.CONTROLLER else 'eth0'
            machine.run('ip', 'address', 'add', '%s/%d' % (
                lab_settings.ADDRESSES[name], lab_settings.PREFIX_LENGTH),
                'dev', device)
            machine.run('ip', 'link', 'set', device, 'up')
        if self.full:
            self.full.join_switches()

    def _ip(self, *argv):
        self.controller.run('ip', *argv)

    def _placement_up(self):
        self.services.sync_placement()
        self.services.placement.start()

    def _glance_up(self, image):
        self.services.sync_glance()
        self.services.glance.start()
        self._wait_for_port('Glance', lab_settings.GLANCE_PORT)
        made = self.glance.call('POST', '/v2/images', {
            'name': 'guest', 'disk_format': 'raw',
            'container_format': 'bare', 'visibility': 'public'})
        with image.open('rb') as data:
            self.glance.call('PUT', '/v2/images/%s/file' % made['id'], data)

    def _wait_for_port(self, name, port):
        waiting.wait_until(lambda: self.controller.listens(port),
                           '%s listens' % name, 120)

    def _wait_for_computes(self):
        self._wait_for_port('nova-api', lab_settings.NOVA_PORT)
        self._wait_for_port('Placement', lab_settings.PLACEMENT_PORT)
        self._wait_for_hosts(self._records, 'have a record in the cell')
        self.services.discover()
        self._wait_for_hosts(self._inventories, 'have an inventory')
        progress.say('flavor')
        self.nova.call('POST', '/flavors', {'flavor': {
            'id': 'lab', 'name': 'lab', 'ram': 64, 'vcpus': 1, 'disk': 1}})

    def _wait_for_hosts(self, names, what):
        def all_have_it():
            dead = [p.name for p in self.processes() if not p.alive]
            if dead:
                raise waiting.WaitTimeout('ended by itself: %s; see %s' % (
                    ', '.join(dead), self.settings.logs))
            return names() >= set(lab_settings.COMPUTE_HOSTS)
        waiting.wait_until(
            all_have_it, lambda: 'hosts %s; of them do: %s' % (
                what, ', '.join(sorted(names())) or 'none'), 240, 0.5)

    def _records(self):
        return {row['host'] for row in self.database.rows(
            'nova', 'select host from services where report_count > 0')}

    def _inventories(self):
        return {row['name'] for row in self.database.rows(
            'placement', 'select p.name from resource_providers p join '
            'inventories i on i.resource_provider_id = p.id')}

    # ---- down

    def down(self):
        """Remove processes, namespaces, mounts and state; keep the logs.

        It also removes what an interrupted bring-up has left.
        """
        if not self.settings.state.exists():
            return
        progress.say('down: processes, namespaces, mounts')
        for process in self.processes():
            with contextlib.suppress(waiting.WaitTimeout):
                process.stop(signal.SIGKILL)
        for name, machine in self.machines.items():
            if machine.exists and name in self.hosts:
                self.hosts[name].down()
        if self.controller.exists:
            self.database.down()
            self.broker.down()
        for machine in self.machines.values():
            machine.remove()
        self._forget_state()

    def _forget_state(self):
        shutil.rmtree(str(self.settings.state))
