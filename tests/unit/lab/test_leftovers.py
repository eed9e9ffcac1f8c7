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

"""What is left behind, told from a record; needs no lab."""

import testtools

from tests.lab import leftovers
from tests.lab import state


def record():
    """A server that is idle on A, with a port and a volume."""
    return state.State(
        server=state.Server('ACTIVE', 'active', None, 1, 'host-a'),
        record={},
        migrations=[state.Migration(
            1, 'm1', 'host-a', 'host-b', 'live-migration', 'cancelled')],
        allocations={'instance': {'host-a': {'VCPU': 1}}},
        hosts={
            'host-a': state.Host(
                domain={'state': 'running', 'persistent': True}, asked=True,
                emulators=['running'], ticks=True, files={'disk': 64},
                devices=['tap0']),
            'host-b': state.Host(), 'host-c': state.Host()},
        ports=[state.Port('p', 'DOWN', 'host-a', {'host-a': 'ACTIVE'}, {})],
        volumes=[state.Volume('v', 'in-use', [
            state.Attachment('a', 'attached', 'host-a', True)])])


class LeftoversTestCase(testtools.TestCase):

    def setUp(self):
        super(LeftoversTestCase, self).setUp()
        self.state = record()

    def expect(self, *texts):
        self.assertEqual(list(texts), leftovers.of(self.state))

    def test_nothing(self):
        self.expect()

    def test_nothing_in_the_light_form(self):
        self.state.ports = []
        self.state.volumes = []
        self.state.hosts['host-a'].devices = []
        self.expect()

    def test_held(self):
        self.state.server.status = 'MIGRATING'
        self.state.server.task_state = 'migrating'
        self.state.migrations[0].status = 'running'
        self.expect('Nova: MIGRATING on host-a', 'migration 1: running')

    def test_guest_runs_elsewhere(self):
        self.state.hosts['host-a'] = state.Host()
        self.state.hosts['host-b'] = state.Host(
            domain={'state': 'running'}, ticks=True)
        self.expect('the guest runs on host-b, Nova says host-a',
                    'no domain on host-a', 'a domain on host-b, running')

    def test_guest_runs_twice(self):
        self.state.hosts['host-b'].ticks = True
        self.state.hosts['host-b'].emulators = ['running']
        self.expect('the guest runs on host-a and host-b, Nova says host-a',
                    'a QEMU on host-b')

    def test_guest_runs_nowhere(self):
        self.state.hosts['host-a'].ticks = False
        self.expect('the guest runs on no host, Nova says host-a')

    def test_job(self):
        self.state.hosts['host-a'].job = {'operation': 'migration out'}
        self.expect('a job on host-a')

    def test_transient(self):
        self.state.hosts['host-a'].domain['persistent'] = False
        self.expect('the domain on host-a is transient')

    def test_libvirt_away(self):
        self.state.hosts['host-a'].trouble = 'no answer'
        self.expect('libvirt on host-a: no answer')

    def test_allocations(self):
        self.state.allocations = {
            'instance': {'host-b': {'VCPU': 1}},
            'migration 1': {'host-a': {'VCPU': 1}}}
        self.expect('the instance holds nothing of host-a',
                    'instance holds resources of host-b',
                    'migration 1 holds resources of host-a')

    def test_port(self):
        port = self.state.ports[0]
        port.bindings = {'host-a': 'ACTIVE', 'host-b': 'INACTIVE'}
        port.migrating_to = {'host-a': 'host-b'}
        self.state.hosts['host-b'].devices = ['tap0']
        self.expect('INACTIVE binding for host-b',
                    'binding for host-a says migrating_to host-b',
                    'a tap on host-b')

    def test_port_of_another_host(self):
        self.state.ports[0].bindings = {'host-b': 'ACTIVE'}
        self.expect('no active binding for host-a',
                    'ACTIVE binding for host-b')

    def test_volume(self):
        self.state.volumes[0].attachments.append(
            state.Attachment('b', 'attached', 'host-b', False))
        self.expect('attachment for host-b')

    def test_volume_of_which_nova_knows_the_other_attachment(self):
        own, = self.state.volumes[0].attachments
        own.nova = False
        self.state.volumes[0].attachments.append(
            state.Attachment('b', 'attached', 'host-b', True))
        self.expect('attachment for host-b, the one that Nova knows',
                    'Nova knows no attachment for host-a')

    def test_files(self):
        self.state.hosts['host-b'].files = {'disk': 32, 'disk.info': 0}
        self.expect('files of 32 MiB on host-b')


class DeletedTestCase(testtools.TestCase):

    def setUp(self):
        super(DeletedTestCase, self).setUp()
        self.state = record()
        self.state.server = state.Server('DELETED')
        self.state.allocations = {}
        self.state.hosts['host-a'] = state.Host()
        self.state.ports = []
        self.state.volumes = []

    def expect(self, *texts):
        self.assertEqual(list(texts), leftovers.of_deleted(self.state))

    def test_nothing(self):
        self.expect()

    def test_everything(self):
        whole = record()
        self.state.server = whole.server
        self.state.migrations[0].status = 'running'
        self.state.allocations = {'migration 1': {'host-b': {'VCPU': 1}}}
        self.state.ports = whole.ports
        self.state.volumes = whole.volumes
        self.state.hosts['host-b'] = whole.hosts['host-a']
        self.expect('migration 1: running', 'Nova: ACTIVE',
                    'migration 1 holds resources of host-b', 'port p',
                    'attachment for host-a', 'a domain on host-b, running',
                    'a tap on host-b', 'files of 64 MiB on host-b')
