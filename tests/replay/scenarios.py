# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The named scenarios, played on a cloud and written down as they happen.

A scenario is one world that behaves the same with the guard and without: what
libvirt, QEMU and the operator do does not depend on it. What Nova answers
does, and the story goes on from there. The verdict is read off what is there
at the end, not off the way there.
"""

from tests.functional import disks

LOST_DISK = 'LOST DISK'
TWO_QEMUS = 'TWO QEMUS'
VF_GIVEN_TWICE = 'VF GIVEN TWICE'
SAFE = 'SAFE'

OPERATOR = 'operator'
USER = 'user'
GUARD = 'guard'
LIBVIRT = 'libvirt'


def nova_compute(host):
    """The name of a host's nova-compute as an actor."""
    return 'nova-compute on %s' % host


class Scenario(object):
    """One story.

    :param cloud: a :class:`~tests.functional.cloud.CloudTestCase` in a test
    :param recorder: has ``event(actor, text, nova=..., hosts=...)``
    """

    #: What stock Nova comes to.
    STOCK = None

    def __init__(self, cloud, recorder):
        self.cloud = cloud
        self._recorder = recorder
        #: {name: server}; the first is the one that the story is about
        self.servers = {}

    @property
    def server(self):
        return self.servers['first']

    def play(self):
        """Play it to the end.

        :returns: the verdict
        """
        raise NotImplementedError

    def event(self, actor, text):
        """Something has happened: write it down with what is true now."""
        self._recorder.event(actor, text, nova=self._nova(), hosts={
            host: self._host(host) for host in self.cloud.world.hypervisors})

    # ---- what is true now, in sentences

    def _nova(self):
        said = []
        for name, server in self.servers.items():
            said.extend(self._nova_of(name, server))
        return '; '.join(said)

    def _nova_of(self, name, server):
        says = self.cloud.nova_says(server)
        state = says.vm_state.upper()
        if says.task_state:
            state += '/' + says.task_state
        if name != 'first':
            return ['%s guest %s' % (name, state)]
        said = ['%s on %s' % (state, says.host)]
        said.extend('migration %s -> %s' % (status, host) for host, status in
                    self.cloud.migration_statuses(server))
        if self._is_held(server):
            said.append('held by the guard')
        return said

    def _is_held(self, server):
        return self.cloud.guard and any(
            server['id'] in self.cloud.held(host)
            for host in self.cloud.processes)

    def _host(self, host):
        said = [] if host in self.cloud.processes else ['nova-compute down']
        hypervisor = self.cloud.hypervisor(host)
        for name, server in self.servers.items():
            domain = hypervisor.domains.get(server['id'])
            prefix = '' if name == 'first' else name + ' '
            state = self.cloud.where(server).get(host)
            if state:
                said.append('%sguest %s' % (prefix, state))
            if domain is not None and domain.outgoing is not None:
                said.append('job -> %s %d %%' % (
                    domain.outgoing.destination.host,
                    domain.outgoing.percent))
            disk = hypervisor.disks.get(server['id'])
            if disk:
                said.append('%sdisk %s' % (prefix, disk))
        said.extend(self._devices(host))
        return '; '.join(said)

    def _devices(self, host):
        """Which guest has which virtual function, in its XML."""
        users = {}
        for name, server in self.servers.items():
            for address in self.cloud.devices_of_guest(host, server):
                users.setdefault(address, []).append(name)
        return ['VF %s of %s' % (address, ' and '.join(names))
                for address, names in sorted(users.items())]

    # ---- what it comes to

    def verdict(self):
        """Judge what is there.

        :returns: LOST_DISK, TWO_QEMUS, VF_GIVEN_TWICE or SAFE
        """
        if any(server['id'] in self.cloud.world.ran_twice
               for server in self.servers.values()):
            return TWO_QEMUS
        if any(' and ' in used for host in self.cloud.world.hypervisors
               for used in self._devices(host)):
            return VF_GIVEN_TWICE
        if not all(self._disk_is_good(server)
                   for server in self.servers.values()):
            return LOST_DISK
        return SAFE

    def _disk_is_good(self, server):
        """Where Nova looks for the disk there is a complete one.

        A server that never got a host never had a disk.
        """
        host = self.cloud.nova_says(server).host
        return host is None or (
            self.cloud.disks(server).get(host) == disks.COMPLETE)

    # ---- steps that several stories share

    def _create(self, name, host, **kwargs):
        self.servers[name] = self.cloud.boot(host, name=name, **kwargs)
        self.event(USER, 'creates a server on %s' % host)

    def _begin_migration(self, host):
        job = self.cloud.begin_migration(self.server, host)
        self.event(OPERATOR, 'live-migrates the server to %s' % host)
        return job

    def _kill(self, host):
        self.cloud.kill_compute(host)
        self.event(nova_compute(host), 'is killed (kill -9)')

    def _start(self, host):
        self.cloud.start_compute(host)
        self.event(nova_compute(host), 'starts again')

    def _wait_until_idle_on(self, host):
        says = self.cloud.nova_says
        self.cloud.wait_until(
            lambda: says(self.server).host == host and
            not says(self.server).task_state,
            lambda: 'idle on %s: %s' % (host, says(self.server)))


class RestartMidMigration(Scenario):
    """nova-compute restarts in mid block migration (bug 1753676).

    libvirt answers the first abort with success and goes on with the job.
    """

    STOCK = LOST_DISK

    def play(self):
        self.cloud.start_hosts('host-a', 'host-b', 'host-c')
        self.cloud.hypervisor('host-a').abort_is_ignored(times=1)
        self._create('first', 'host-a')
        job = self._begin_migration('host-b')
        self._kill('host-a')
        self._start('host-a')
        if self._ask_for_c():
            self._stream_ends(job)
        else:
            self._settle()
            if self._ask_for_c():
                self._arrive_on_c()
        return self.verdict()

    def _ask_for_c(self):
        """The operator tries the next host; returns whether Nova does."""
        if self.cloud.refused(self.cloud.live_migrate, self.server,
                              'host-c'):
            self.event(OPERATOR, 'live-migrates the server to host-c: '
                       'refused, 409')
            return False
        self.cloud.wait_until(
            lambda: (self.server['id'] in
                     self.cloud.hypervisor('host-a').refused or
                     self._job_to_c()), 'libvirt is asked to migrate to C')
        self.event(OPERATOR, 'live-migrates the server to host-c: accepted')
        return True

    def _job_to_c(self):
        job = self.cloud.world.running_job(self.server['id'])
        return job if job and job.destination.host == 'host-c' else None

    def _stream_ends(self, job):
        """The first job, which Nova has forgotten, comes to its end."""
        job.copied(80)
        self.event(LIBVIRT, 'still copies to host-b')
        job.complete()
        self.event(LIBVIRT, 'ends the copy; the guest runs on host-b')
        self._wait_until_idle_on('host-c')
        self.cloud.wait_until(
            lambda: 'host-a' not in self.cloud.disks(self.server),
            "host-a's disk is deleted")
        self.event(nova_compute('host-a'), 'takes it for the end of the '
                   'migration to host-c, and cleans up')

    def _settle(self):
        self.cloud.settle('host-a')
        self.event(GUARD, 'aborts the job once more, and sees it gone')

    def _arrive_on_c(self):
        self._job_to_c().complete()
        self._wait_until_idle_on('host-c')
        self.cloud.wait_until(
            lambda: self.cloud.migrations(self.server)[-1].status ==
            'completed', 'the migration is completed')
        self.event(nova_compute('host-a'), 'ends the migration to host-c')


class CompletedWhileDown(Scenario):
    """The migration completes while nova-compute is down."""

    STOCK = TWO_QEMUS

    def play(self):
        self.cloud.start_hosts('host-a', 'host-b')
        self._create('first', 'host-a')
        job = self._begin_migration('host-b')
        self._kill('host-a')
        job.complete()
        self.event(LIBVIRT, 'ends the copy; the guest runs on host-b')
        self._start('host-a')
        if self.cloud.refused(self.cloud.act, self.server, 'reboot',
                              {'type': 'HARD'}):
            self.event(USER, 'reboots the server: refused, 409')
        else:
            self._wait_until_idle_on('host-a')
            self.cloud.wait_until(
                lambda: self.cloud.where(self.server).get('host-a') ==
                'running', 'the reboot has started the guest')
            self.event(USER, 'sees a server that does not answer, and '
                       'reboots it')
        return self.verdict()
