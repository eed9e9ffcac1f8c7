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
"""The named scenarios on the lab: real nova-compute, libvirtd and QEMU.

    python -m tests.replay.on_lab NAME

Environment variables are those of ``tests.replay.test_scenarios``, and the
lab's. What libvirt does is not arranged: a verdict is what was seen.
"""

import os
import sys

from tests.lab import clients
from tests.lab import lab as labs
from tests.lab import leftovers
from tests.lab import settings
from tests.lab import waiting
from tests.replay import recorder as recorders

LOST_DISK = 'LOST DISK'
TWO_QEMUS = 'TWO QEMUS'
LEFT_BEHIND = 'LEFT BEHIND'
SAFE = 'SAFE'

OPERATOR = 'operator'
USER = 'user'
LIBVIRT = 'libvirt'
#: Ticks that a guest may write before its disk is looked at.
SLACK = 3
#: Seconds that an operator waits before the next request.
PATIENCE = 60
#: Seconds in which what is not needed any more goes.
CLEAN_UP = 20


def nova_compute(host):
    """The name of a host's nova-compute as an actor."""
    return 'nova-compute on %s' % host


class Scenario(object):
    """One story.

    :param lab: Lab
    :param recorder: Recorder
    """

    def __init__(self, lab, recorder):
        self.lab = lab
        self._recorder = recorder
        self.server = None
        self._ran_twice = False
        self._newest_tick = 0
        # hosts whose disk is a copy that was not seen to be whole
        self._copies = set()

    def play(self):
        """Play it to the end."""
        raise NotImplementedError

    # ---- what is true now, in sentences

    def event(self, actor, text):
        """Something has happened: write it down with what is true now."""
        state = self._look()
        self._recorder.event(actor, text, nova=self._nova(state), hosts={
            name: self._host(name, host, state)
            for name, host in state.hosts.items()})
        return state

    def _look(self):
        """See what is true, and keep what matters later."""
        state = self.lab.observe(self.server)
        self._ran_twice |= len(state.running_on) > 1
        self._newest_tick = max([self._newest_tick] + [
            host.console or 0 for host in state.hosts.values()])
        copied = any(host.has_job for host in state.hosts.values())
        for name, host in state.hosts.items():
            if host.ticks:
                self._copies.discard(name)
            elif copied and host.emulators:
                self._copies.add(name)
        return state

    @staticmethod
    def _nova(state):
        server = state.server
        says = (server.vm_state or server.status).upper()
        if server.task_state:
            says += '/' + server.task_state
        said = ['%s on %s' % (says, server.host)]
        said += ['migration %s -> %s' % (m.status, m.dest)
                 for m in state.migrations]
        said += ['%s holds %s' % (consumer, ', '.join(sorted(held)))
                 for consumer, held in sorted(state.allocations.items())]
        return '; '.join(said)

    def _host(self, name, host, state):
        compute = self.lab.parts.services.computes[name]
        said = [] if compute.alive else ['nova-compute down']
        if host.ticks:
            said.append('guest running')
        elif host.emulators:
            said.append('guest paused')
        if host.has_job:
            said.append(self._job(name, host, state))
        if host.disk is not None:
            said.append('disk complete' if self._is_complete(name, host) else
                        'disk partial')
        said += ['binding ' + port.bindings[name] for port in state.ports
                 if name in port.bindings]
        said += ['tap on br-int' for _device in host.devices]
        said += ['attachment %s' % (
            'known to Nova' if a.nova else 'not known to Nova')
            for volume in state.volumes for a in volume.attachments
            if a.host == name]
        return '; '.join(said)

    @staticmethod
    def _job(name, host, state):
        targets = [other for other, seen in state.hosts.items()
                   if other != name and seen.emulators]
        percent = [100 * disk['done'] // max(1, disk['size'])
                   for disk in host.disks.values()]
        return 'job -> %s%s' % (
            targets[0] if targets else state.migrations[-1].dest,
            ' %d %%' % percent[0] if percent else '')

    def _is_complete(self, name, host):
        return (name not in self._copies and
                host.disk >= self._newest_tick - SLACK)

    # ---- what it comes to

    def verdict(self):
        """Judge what is there."""
        # other hosts clean up when they are told to
        self._wait(lambda: not leftovers.of(self._look()), CLEAN_UP)
        state = self._look()
        if self._ran_twice:
            return TWO_QEMUS
        name = state.server.host
        disk = state.hosts[name]
        if disk.disk is None or not self._is_complete(name, disk):
            return LOST_DISK
        if leftovers.of(state):
            return LEFT_BEHIND
        return SAFE

    # ---- steps that several stories share

    def _begin(self):
        self.server = self.lab.boot('host-a')
        if self.lab.parts.full:
            self.lab.attach_volume(self.server)
        self.event(USER, 'creates a server on host-a')
        self.lab.live_migrate(self.server, 'host-b')
        self.lab.wait_for_copy(self.server, 'host-a')
        self.event(OPERATOR, 'live-migrates the server to host-b')

    def _kill(self, host):
        self.lab.kill_compute(host)
        self.event(nova_compute(host), 'is killed (kill -9)')

    def _start(self, host):
        self.lab.start_compute(host)
        self.event(nova_compute(host), 'starts again')

    def _wait(self, predicate, timeout=PATIENCE):
        """Wait as long as an operator would; returns whether it came."""
        try:
            waiting.wait_until(predicate, 'it happens', timeout, 1)
        except waiting.WaitTimeout:
            return False
        return True

    def _is_idle(self):
        return self.lab.nova_says(self.server)[1] is None


class RestartMidMigration(Scenario):
    """nova-compute restarts in mid block migration (bug 1753676)."""

    def play(self):
        self._begin()
        self._kill('host-a')
        self._start('host-a')
        self._wait(self._is_idle)
        try:
            self.lab.live_migrate(self.server, 'host-c')
        except clients.ApiError as e:
            self.event(OPERATOR, 'live-migrates the server to host-c: '
                       'refused, %d' % e.status)
            return
        self._wait(lambda: self.lab.migrations(self.server)[-1].status not in
                   ('accepted', 'queued', 'preparing'))
        self.event(OPERATOR, 'live-migrates the server to host-c: accepted')
        status = self.lab.finish_migration(self.server)
        self._wait(self._is_idle)
        # where the guest has left, the disk goes last
        self._wait(lambda: self.lab.hosts['host-a'].files(self.server) is
                   None, PATIENCE / 2)
        self.event(nova_compute('host-a'),
                   'ends the migration to host-c: ' + status)


class CompletedWhileDown(Scenario):
    """The migration completes while nova-compute is down."""

    def play(self):
        self._begin()
        self._kill('host-a')
        self.lab.throttle(self.server, 0)
        self.lab.wait_until(
            lambda: not self.lab.hosts['host-a'].emulators(), self.server,
            'has left host-a')
        self.event(LIBVIRT, 'ends the copy; the guest runs on host-b')
        self._start('host-a')
        self._wait(self._is_idle, PATIENCE / 2)
        try:
            self.lab.reboot(self.server)
        except clients.ApiError as e:
            self.event(USER, 'reboots the server: refused, %d' % e.status)
            return
        self._wait(self._is_idle)
        self.event(USER, 'reboots the server')


SCENARIOS = {
    'restart-mid-migration': RestartMidMigration,
    'completed-while-down': CompletedWhileDown,
}


def main():
    name, = sys.argv[1:]
    guard = os.environ.get('NMG_GUARD', 'on') == 'on'
    lab, brought_up = labs.connect(settings.Settings.from_environ(
        guard=guard, compute_options=settings.QUICK_OPTIONS))
    recorder = recorders.Recorder()
    scenario = SCENARIOS[name](lab, recorder)
    try:
        lab.mend()
        lab.configure_computes(guard, settings.QUICK_OPTIONS)
        scenario.play()
        verdict = scenario.verdict()
        recorder.write(name, guard, lab.parts.settings.release, verdict,
                       verdict == SAFE)
    finally:
        if brought_up:
            lab.parts.down()
        elif scenario.server:
            lab.mend()
            lab.forget(scenario.server)


if __name__ == '__main__':
    main()
