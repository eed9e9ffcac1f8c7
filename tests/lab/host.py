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


"""A compute host: its storage, its libvirtd, its QEMUs."""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

from tests.lab import guest
from tests.lab import namespaces
from tests.lab import processes
from tests.lab import settings as lab_settings
from tests.lab import waiting

LIBVIRTD_CONF = '''\
listen_tls = 0
listen_tcp = 1
listen_addr = "{address}"
auth_tcp = "none"
auth_unix_rw = "none"
host_uuid = "{uuid}"
log_outputs = "2:file:/var/log/libvirt/libvirtd.log"
'''
QEMU_CONF = '''\
user = "root"
group = "root"
security_driver = "none"
remember_owner = 0
# without virtlogd
stdio_handler = "file"
# QEMU stays in the namespaces of the host and outside of cgroups
namespaces = []
cgroup_controllers = []
'''
#: Seconds in which libvirt must answer, on a machine that is busy. Questions
#: that are known to hang are not asked.
PATIENCE = 20

#: A QEMU on a host. pid; uuid of its domain; frozen: whether SIGSTOP holds it
Emulator = collections.namedtuple('Emulator', ['pid', 'uuid', 'frozen'])


class LibvirtAway(Exception):
    """libvirtd does not answer."""


class ComputeHost(object):
    """One host.

    :param settings: of the lab
    :param name: 'host-a'
    :param machine: its Namespace
    :param python: an interpreter that has libvirt-python
    """

    def __init__(self, settings, name, machine, python):
        self.name = name
        self.machine = machine
        self._settings = settings
        self._python = python
        self._storage = settings.storage(name)
        self._logs = settings.logs / ('libvirt-' + name)
        self.instances = self._storage / 'compute' / 'instances'
        self.libvirtd = processes.Process(
            'libvirtd-' + name,
            ['libvirtd', '--listen',
             '--pid-file', '/run/libvirt/libvirtd.pid'],
            settings.state / 'pid', settings.logs, wrap=machine.enter,
            env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'})

    # ---- up and down

    def up(self):
        """Give the host its storage and start its libvirtd."""
        self._leave_cgroups()
        etc = self._folder('etc-libvirt')
        (etc / 'qemu').mkdir()
        number = lab_settings.COMPUTE_HOSTS.index(self.name) + 1
        (etc / 'libvirtd.conf').write_text(LIBVIRTD_CONF.format(
            address=lab_settings.ADDRESSES[self.name],
            uuid='%08d-0000-4000-8000-000000000001' % number))
        (etc / 'qemu.conf').write_text(QEMU_CONF)
        self._logs.mkdir()
        for source, target in (
                (etc, '/etc/libvirt'),
                (self._folder('run-libvirt'), '/run/libvirt'),
                (self._folder('lib-libvirt'), '/var/lib/libvirt'),
                (self._folder('cache-libvirt'), '/var/cache/libvirt'),
                (self._logs, '/var/log/libvirt'),
                (self._folder('compute'), self._settings.compute_path)):
            # in the machine: /run may be a file system of its own there
            self.machine.run('mkdir', '-p', target)
            self.machine.mount(source, target)
        self.instances.mkdir()
        self.start_libvirtd()

    def _folder(self, name):
        folder = self._storage / name
        folder.mkdir(parents=True)
        return folder

    def _leave_cgroups(self):
        # where libvirt sees a cgroup file system it moves its guests into
        # groups of the real machine
        mounts = self.machine.run('cat', '/proc/self/mounts').splitlines()
        targets = [line.split()[1] for line in mounts]
        for target in reversed(targets):
            if (target + '/').startswith('/sys/fs/cgroup/'):
                self.machine.run('umount', target)

    def start_libvirtd(self):
        self.libvirtd.start()
        address = lab_settings.ADDRESSES[self.name]
        waiting.wait_until(
            lambda: self.machine.listens(16509, address),
            'libvirtd of %s listens; see %s' % (
                self.name, self._logs / 'libvirtd.log'), 30)

    def down(self):
        """Kill guests and libvirtd."""
        for emulator in self.emulators():
            with contextlib.suppress(ProcessLookupError):
                os.kill(emulator.pid, signal.SIGKILL)
        self.libvirtd.stop(signal.SIGKILL)

    # ---- QEMU

    def emulators(self):
        """All QEMUs of the host, whether libvirt knows them or not."""
        found = []
        for pid in self.machine.processes():
            with contextlib.suppress(OSError, ValueError, TypeError):
                words = pathlib.Path(
                    '/proc/%d/cmdline' % pid).read_text().split('\0')
                if 'qemu-system' not in words[0]:
                    continue
                uuid = words[words.index('-uuid') + 1]
                found.append(Emulator(pid, uuid,
                                      processes.status(pid)[0] == 'T'))
        return found

    def emulator(self, uuid):
        """The QEMU of one instance.

        :raises LookupError: there is none, or more than one
        """
        found = [e for e in self.emulators() if e.uuid == uuid]
        if len(found) != 1:
            raise LookupError('%s has %d QEMUs for %s' % (
                self.name, len(found), uuid))
        return found[0]

    # ---- libvirt

    def virsh(self, *argv, **options):
        """Run virsh on the host, and return what it printed."""
        return self.machine.run('virsh', '--quiet', '--connect',
                                'qemu:///system', *argv, **options)

    def domains(self):
        """What libvirt says of its domains.

        :returns: {uuid: {name, state, reason, persistent, job, disks}}; job
            and disks are not there when libvirt cannot be asked for them, or
            does not answer
        :raises LibvirtAway: libvirtd does not answer at all
        """
        frozen = [e.uuid for e in self.emulators() if e.frozen]
        probe = subprocess.Popen(
            self.machine.enter() + [
                str(self._python), '-W', 'ignore',
                str(lab_settings.PROGRAMS / 'probe_libvirt.py')] + frozen,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, universal_newlines=True)
        try:
            out, err = probe.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            probe.kill()
            out, err = probe.communicate()
        lines = out.splitlines()
        if not lines:
            raise LibvirtAway(err.strip()[-300:] or 'no answer')
        found = json.loads(lines[0])
        for uuid, jobs in json.loads((lines + ['{}'])[1]).items():
            found.get(uuid, {}).update(jobs)
        return found

    def set_speed(self, name, bandwidth):
        """Limit how fast a migration copies.

        libvirt refuses to change a block job during a migration, so QEMU is
        asked.

        :param name: of the domain
        :param bandwidth: MiB/s; 0: no limit
        """
        self.set_disk_speed(name, bandwidth)
        # 0 would be a standstill; this is its largest value
        self.set_memory_speed(name, (bandwidth << 20) or (1 << 60))

    def set_disk_speed(self, name, bandwidth):
        for job in self._monitor(name, 'query-block-jobs'):
            self._monitor(name, 'block-job-set-speed', device=job['device'],
                          speed=bandwidth << 20)

    def set_memory_speed(self, name, speed):
        """Limit how fast a migration copies memory; B/s."""
        self._monitor(name, 'migrate-set-parameters',
                      **{'max-bandwidth': speed})

    def block_jobs(self, name):
        """The block jobs of a domain, as QEMU knows them.

        :returns: {name of the job: percent done}
        """
        return {job['device']: 100.0 * job['offset'] / max(1, job['len'])
                for job in self._monitor(name, 'query-block-jobs')}

    def fill_disk(self, uuid, mebibytes):
        """Write to the disk of a guest that is off.

        Behind what the guest writes to itself, so that what was written since
        the disk was made takes long to copy.
        """
        self.machine.run('qemu-io', '-f', 'raw', '-c', 'write 128M %dM' %
                         mebibytes, str(self.instances / uuid / 'disk'))

    def _monitor(self, name, command, **arguments):
        answer = json.loads(self.virsh(
            'qemu-monitor-command', name, json.dumps(
                {'execute': command, 'arguments': arguments})))
        if 'error' in answer:
            raise namespaces.CommandFailed(
                1, [command], '', json.dumps(answer['error']))
        return answer['return']

    # ---- what guests leave on the host's disks

    def files(self, uuid):
        """{name: MiB that it takes} in the folder of an instance, or None."""
        folder = self.instances / uuid
        try:
            return {entry.name: entry.stat().st_blocks * 512 >> 20
                    for entry in os.scandir(str(folder))}
        except FileNotFoundError:
            return None

    def console_tick(self, uuid):
        return guest.console_tick(self.instances / uuid / 'console.log')

    def disk_tick(self, uuid):
        return guest.disk_tick(self.instances / uuid / 'disk')

    def forget(self, uuid):
        """Remove all traces of an instance.

        :returns: list of what was there
        """
        traces = []
        for emulator in self.emulators():
            if emulator.uuid == uuid:
                traces.append('QEMU on %s' % self.name)
                os.kill(emulator.pid, signal.SIGKILL)
                waiting.wait_until(
                    lambda pid=emulator.pid: processes.status(pid) is None,
                    'QEMU %d ends' % emulator.pid, 10)
        if uuid in self.virsh('list', '--all', '--uuid').split():
            traces.append('domain on %s' % self.name)
            waiting.wait_until(lambda: self._undefined(uuid),
                               'domain %s is gone' % uuid, 30, 1)
        for folder in self.instances.glob(uuid + '*'):
            traces.append('%s on %s' % (folder.name, self.name))
            shutil.rmtree(str(folder))
        return traces

    def _undefined(self, uuid):
        if uuid in self.virsh('list', '--all', '--uuid').split():
            with contextlib.suppress(namespaces.CommandFailed):
                self.virsh('undefine', uuid)
            return False
        return True
