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


"""What operators do to a lab, and what breaks in it."""

import os
import signal as signals

from tests.lab import progress
from tests.lab import waiting

#: Seconds for what nova-compute does, on a machine that is busy.
PATIENCE = 300
#: Up to 33 nova-compute waits at SIGTERM for what it is doing.
SIGTERM_PATIENCE = 240
#: What nova-compute logs, on every release, when init_host has ended and its
#: RPC server answers. Its first report comes five seconds later.
STARTED = b'Join ServiceGroup membership'
#: Seconds since the last report within which Nova takes a host for up; half
#: of [DEFAULT] service_down_time.
UP = 30


class Operations(object):
    """On the services and the network of a lab.

    :param parts: Deployment
    """

    def __init__(self, parts):
        self.parts = parts

    @property
    def hosts(self):
        """{name: ComputeHost}"""
        return self.parts.hosts

    def kill_compute(self, host, signal=signals.SIGKILL):
        """Send nova-compute a signal, and wait until it is gone."""
        process = self.parts.services.computes[host]
        progress.say('%s to nova-compute on %s' % (
            signals.Signals(signal).name, host))
        process.stop(signal, PATIENCE if signal == signals.SIGKILL else
                     SIGTERM_PATIENCE)

    def start_compute(self, host, wait=True):
        """Start nova-compute.

        :param wait: until it has started
        """
        progress.say('start nova-compute on %s' % host)
        self.parts.services.write_compute(host)
        self.parts.services.computes[host].start()
        if wait:
            self.wait_for_compute(host)

    def wait_for_compute(self, host, timeout=PATIENCE):
        """Wait until nova-compute has started: it is after init_host.

        :param timeout: seconds
        """
        process = self.parts.services.computes[host]

        def has_started():
            if not process.alive:
                raise AssertionError('nova-compute on %s ended; see %s' % (
                    host, process.log))
            return process.has_logged(STARTED) and self._is_up(host)
        waiting.wait_until(has_started, 'nova-compute on %s has started; see '
                           '%s' % (host, process.log), timeout)
        progress.say('nova-compute on %s has started' % host)

    def _is_up(self, host):
        """Whether Nova takes a host for up, and for how long yet."""
        row, = self.parts.database.rows(
            'nova', 'select timestampdiff('  # noqa: S608
            'second, last_seen_up, utc_timestamp()) as age from services '
            "where host = '%s' and `binary` = 'nova-compute'" % host)
        return int(row['age']) < UP

    def configure_computes(self, guard, options):
        """Have every nova-compute run with these options.

        They are started again unless they have them already.

        :param guard: whether with the guard
        :param options: {section: {option: value}}, more of them
        """
        settings = self.parts.settings
        if (settings.guard, settings.compute_options) == (guard, options):
            return
        progress.say('nova-compute %s the guard, %s' % (
            'with' if guard else 'without', options))
        settings.guard = guard
        settings.compute_options = options
        self.parts.remember()
        for host in self.hosts:
            self.kill_compute(host)
        for host in self.hosts:
            self.start_compute(host, wait=False)
        for host in self.hosts:
            self.wait_for_compute(host)

    def freeze_compute(self, host):
        """Stop nova-compute: it answers nothing, until it is thawed."""
        progress.say('freeze nova-compute on %s' % host)
        self.parts.services.computes[host].kill(signals.SIGSTOP)

    def thaw_compute(self, host):
        progress.say('thaw nova-compute on %s' % host)
        self.parts.services.computes[host].kill(signals.SIGCONT)

    def stop_libvirtd(self, host, signal=signals.SIGKILL):
        """Stop libvirtd; its QEMUs go on."""
        progress.say('%s to libvirtd on %s' % (
            signals.Signals(signal).name, host))
        self.hosts[host].libvirtd.stop(signal)

    def start_libvirtd(self, host):
        progress.say('start libvirtd on %s' % host)
        self.hosts[host].start_libvirtd()

    def freeze_qemu(self, server, host):
        """Stop the QEMU of a server: neither guest nor monitor runs."""
        progress.say('freeze the QEMU of %s on %s' % (server, host))
        os.kill(self.hosts[host].emulator(server).pid, signals.SIGSTOP)

    def thaw_qemu(self, server, host):
        progress.say('thaw the QEMU of %s on %s' % (server, host))
        os.kill(self.hosts[host].emulator(server).pid, signals.SIGCONT)

    def cut_network(self, *hosts):
        """Have hosts no longer reach each other.

        They reach the controller and the other hosts as before.
        """
        self._isolate(hosts, 'on')

    def heal_network(self, *hosts):
        self._isolate(hosts or tuple(self.hosts), 'off')

    def _isolate(self, hosts, isolated):
        progress.say('isolation of %s: %s' % (', '.join(hosts), isolated))
        for host in hosts:
            self.parts.controller.run('ip', 'link', 'set', 'dev', host,
                                      'type', 'bridge_slave', 'isolated',
                                      isolated)
