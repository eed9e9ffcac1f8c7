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

"""The adapter for devstack: hosts by ssh, nova-compute by systemd."""

import shlex
import subprocess
import time

import openstack

from tests.scenarios import cloud

UNIT = 'devstack@n-cpu.service'
#: What nova-compute logs on every release when its start has ended.
STARTED = 'Join ServiceGroup membership'
#: Seconds for a start, and for a command on a host.
START = 300
COMMAND = 120


class Devstack(cloud.Cloud):
    """A devstack with a controller and two subnodes.

    :param hosts: {name of a host, as Nova has it: where ssh reaches it}; the
        user there may use sudo
    :param cloud_name: of clouds.yaml, an administrator's
    """

    def __init__(self, hosts, cloud_name, flavor, image, network):
        self._addresses = hosts
        self.hosts = tuple(hosts)
        self.connection = openstack.connect(cloud=cloud_name)
        self.flavor = flavor
        self.image = image
        self.networks = 'none' if network is None else [
            {'uuid': self.connection.network.find_network(network, False).id}]

    def run(self, host, *argv):
        return subprocess.run(
            ['ssh', '-o', 'BatchMode=yes', self._addresses[host],
             'sudo ' + ' '.join(shlex.quote(word) for word in argv)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, universal_newlines=True, check=True,
            timeout=COMMAND).stdout

    def kill_compute(self, host):
        # systemd starts nothing again that it was told to stop
        self.run(host, 'systemctl', 'mask', '--runtime', UNIT)
        self.run(host, 'systemctl', 'kill', '--kill-whom=all',
                 '--signal=SIGKILL', UNIT)
        self._wait(lambda: not self._is_active(host),
                   'nova-compute on %s is gone' % host)

    def start_compute(self, host):
        since = self.run(host, 'date', '+%s').strip()
        self.run(host, 'systemctl', 'unmask', '--runtime', UNIT)
        self.run(host, 'systemctl', 'reset-failed', UNIT)
        self.run(host, 'systemctl', 'start', UNIT)
        self._wait(lambda: STARTED in self.run(
            host, 'journalctl', '--unit', UNIT, '--since', '@' + since,
            '--output', 'cat'), 'nova-compute on %s has started' % host)

    def _is_active(self, host):
        try:
            self.run(host, 'systemctl', 'is-active', '--quiet', UNIT)
        except subprocess.CalledProcessError:
            return False
        return True

    @staticmethod
    def _wait(predicate, what):
        end = time.monotonic() + START
        while not predicate():
            if time.monotonic() > end:
                raise RuntimeError('not after %d s: %s' % (START, what))
            time.sleep(1)
