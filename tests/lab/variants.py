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

"""Ways in which a migration A -> B loses its nova-compute.

Each is played on a server whose migration is in mid flight. When it is over
nova-compute runs again, unless it cannot.
"""

import collections
import signal

from tests.lab import lab as lab_module
from tests.lab import progress
from tests.lab import waiting

#: name; title, for people; percent of the disk that is copied before; play, a
#: function of a Lab and a server.
Variant = collections.namedtuple('Variant', ['name', 'title', 'percent',
                                             'play'])
#: MiB/s at which the copy gets to where it is wanted.
FAST = 20
#: Percent of the disk of which a migration is not let go on faster.
SLOWLY = 1
#: Seconds that a failure lasts before it is mended.
LASTS = 40
VARIANTS = collections.OrderedDict()


def _variant(title, percent=lab_module.UNDER_WAY):
    def add(play):
        name = play.__name__.replace('_', '-')
        VARIANTS[name] = Variant(name, title, percent, play)
        return play
    return add


def begin(lab, server, variant):
    """Migrate A -> B until as much is copied as the variant wants."""
    lab.live_migrate(server, 'host-b')
    lab.wait_for_copy(server, 'host-a', min(variant.percent, SLOWLY))
    if variant.percent > SLOWLY:
        lab.throttle(server, FAST)
        lab.wait_for_copy(server, 'host-a', variant.percent)
        lab.throttle(server, lab.parts.settings.bandwidth)


def _gone_from(lab, server, host):
    lab.wait_until(lambda: not any(
        emulator.uuid == server for emulator in lab.hosts[host].emulators()),
        server, 'has no QEMU on %s' % host, interval=0.1)


def _job_ended(lab, server):
    lab.wait_until(
        lambda: not lab.hosts['host-a'].domains().get(server, {}).get('job'),
        server, 'has no job on host-a')


@_variant('kill -9 at 1 %', percent=1)
def killed_at_1_percent(lab, server):
    lab.kill_compute('host-a')
    lab.start_compute('host-a')


@_variant('kill -9 at 50 %', percent=50)
def killed_at_50_percent(lab, server):
    lab.kill_compute('host-a')
    lab.start_compute('host-a')


@_variant('kill -9 after the switch-over, in post-migration')
def killed_after_switch_over(lab, server):
    # A has given away what it had of the server, down to the port's binding,
    # and is about to have B take over, which a B that is frozen does not do
    lab.freeze_compute('host-b')
    lab.throttle(server, 0)
    _gone_from(lab, server, 'host-a')
    full = lab.parts.full
    if full:
        lab.wait_until(lambda: any(
            binding['host'] == 'host-b' and binding['status'] == 'ACTIVE'
            for port in full.neutron.ports(server)
            for binding in full.neutron.bindings(port['id'])),
            server, 'is bound on host-b')
    lab.kill_compute('host-a')
    lab.thaw_compute('host-b')
    lab.start_compute('host-a')


@_variant('the migration ends while nova-compute of A is down')
def ended_while_down(lab, server):
    lab.kill_compute('host-a')
    lab.throttle(server, 0)
    _gone_from(lab, server, 'host-a')
    lab.start_compute('host-a')


@_variant('SIGTERM')
def terminated(lab, server):
    lab.kill_compute('host-a', signal.SIGTERM)
    lab.start_compute('host-a')


@_variant('libvirtd of A is killed, too')
def killed_with_libvirtd_of_a(lab, server):
    lab.kill_compute('host-a')
    lab.stop_libvirtd('host-a')
    lab.start_libvirtd('host-a')
    lab.start_compute('host-a')


@_variant('libvirtd of B is killed, too')
def killed_with_libvirtd_of_b(lab, server):
    lab.kill_compute('host-a')
    lab.stop_libvirtd('host-b')
    lab.start_compute('host-a')
    lab.start_libvirtd('host-b')


@_variant('the network between A and B is cut meanwhile')
def network_cut(lab, server):
    lab.kill_compute('host-a')
    lab.cut_network('host-a', 'host-b')
    lab.start_compute('host-a')
    lab.state(server, 'network cut')
    lab.heal_network()


@_variant("A's QEMU is frozen meanwhile (SIGSTOP)")
def qemu_frozen(lab, server):
    lab.kill_compute('host-a')
    lab.freeze_qemu(server, 'host-a')
    lab.start_compute('host-a', wait=False)
    try:
        lab.wait_for_compute('host-a', timeout=LASTS)
    except waiting.WaitTimeout:
        progress.say('nova-compute does not start')
    lab.state(server, 'QEMU frozen')
    lab.thaw_qemu(server, 'host-a')


@_variant('nova-compute of B is killed, too')
def killed_on_both_hosts(lab, server):
    lab.kill_compute('host-a')
    lab.kill_compute('host-b')
    lab.start_compute('host-a')
    lab.start_compute('host-b')


@_variant('kill -9 once more when the job has just been aborted')
def killed_twice(lab, server):
    lab.kill_compute('host-a')
    lab.start_compute('host-a', wait=False)
    _job_ended(lab, server)
    lab.kill_compute('host-a')
    lab.start_compute('host-a')
