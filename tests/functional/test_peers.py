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

"""The destination's libvirt is asked where its nova-compute is down."""

from tests.functional import test_settler


class PeerLibvirt(test_settler.HeldTestCase):
    """What nova-compute on B does not say, its libvirt does."""

    GUARD_OPTIONS = dict(test_settler.HeldTestCase.GUARD_OPTIONS,
                         call_timeout=2)

    def setUp(self):
        super(PeerLibvirt, self).setUp()
        self.job = self.begin_migration(self.server, 'host-b')

    def _restart_without_b(self):
        self.kill_compute('host-b')
        self.restart_compute('host-a')
        self.must_be_held('nova-compute on host-b')

    def _allow(self):
        self.flags(peer_libvirt=True, group='migration_guard')
        self.guard_of('host-a').settle_held()

    def test_roll_back(self):
        self.hypervisor('host-b').libvirtd_dies()
        self._restart_without_b()
        self._allow()
        self.must_be_held('libvirt on host-b')
        self.hypervisor('host-b').libvirtd_is_back()
        self.guard_of('host-a').settle_held()
        self.assertIn('migration_guard_roll_back', self.actions())
        # its volume can be disconnected there by nova-compute only
        self.must_be_held()
        self.start_compute('host-b')
        self.settle('host-a')
        self.must_be_as_before()
        self.must_live_on()

    def test_finish(self):
        self.job.complete()
        self._restart_without_b()
        self._allow()
        self.assertEqual({'host-b': 'running'}, self.where(self.server))
        self.must_be_held()
        self.start_compute('host-b')
        self.settle('host-a')
        self.must_be_on('host-b')
        self.must_migrate_to('host-c')
        self.must_delete()

    def test_guest_has_shut_down_at_the_destination(self):
        """nova-compute on B says that it does not run, not why."""
        self.kill_compute('host-a')
        self.job.complete()
        self.hypervisor('host-b').domains[self.server['id']].shutdown()
        self.start_compute('host-a')
        self.must_be_held('its domain is there and does not run')
        self._allow()
        self.settle('host-a')
        self.assertEqual('host-b', self.nova_says(self.server).host)
        self.assertEqual({'host-b': 'shutoff'}, self.where(self.server))
        self.assertEqual(['host-b'], list(self.disks(self.server)))
