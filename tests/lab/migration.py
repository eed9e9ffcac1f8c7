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

"""What tests of a live migration that loses its nova-compute share."""

from tests.lab import base
from tests.lab import clients
from tests.lab import leftovers
from tests.lab import waiting

#: Seconds in which what is left on other hosts goes: Nova asks for that with
#: casts, and B's libvirtd sees to its QEMU by itself.
CLEAN_UP = 60


class MigrationTestCase(base.LabTestCase):
    """A guest on A that migrates to B; in the full form it has a volume.

    Its steps, and what must be true of it.
    """

    def setUp(self):
        super(MigrationTestCase, self).setUp()
        self.server = self.boot('host-a', volume=bool(self.lab.parts.full))

    # ---- steps

    def begin(self):
        """Migrate A -> B until the copy is under way."""
        self.lab.live_migrate(self.server, 'host-b')
        self.lab.wait_for_copy(self.server, 'host-a')
        self.before = self.state('in mid migration')
        self.assertEqual(('active', 'migrating', 'host-a'), self.before.nova)
        self.assertEqual(['host-a'], self.before.running_on)
        self.must_be_copied_by_libvirt(self.before)

    def let_libvirt_finish(self):
        """Let the migration end while nobody looks."""
        self.lab.throttle(self.server, 0)
        self.lab.wait_until(
            lambda: self.server not in self.lab.hosts['host-a'].domains(),
            self.server, 'has left host-a')

    def state(self, label):
        return self.lab.state(self.server, label)

    def wait_until_settled(self, host='host-a'):
        """Wait until Nova says that it is idle on a host."""
        self.lab.wait_until(
            lambda: self.lab.nova_says(self.server) == ('active', None, host),
            self.server, 'is idle on %s' % host)

    # ---- what must be true

    def must_be_copied_by_libvirt(self, state):
        """The job is in flight, whatever Nova knows of it."""
        self.assertTrue(state.hosts['host-a'].has_job, state)
        self.assertEqual('migration out', state.hosts['host-a'].job[
            'operation'])
        self.assertEqual(['running'], state.hosts['host-b'].emulators)

    def must_be_on_alone(self, host, state):
        """The guest ticks on a host, no other host has anything that runs."""
        self.assertEqual([host], state.running_on, state)
        self.assertFalse(state.hosts[host].has_job, state)
        self.assertTrue(state.hosts[host].asked, state)
        self.assertTrue(state.hosts[host].domain['persistent'])
        for name, other in state.hosts.items():
            self.assertIsNone(other.trouble)
            if name != host:
                self.assertIsNone(other.domain, state)
                self.assertEqual([], other.emulators, state)

    def must_be_whole_on(self, host, label):
        """It is idle on a host, with all that it takes, and nowhere else.

        :returns: the state.State
        """
        try:
            waiting.wait_until(
                lambda: not leftovers.of(self.lab.observe(self.server)),
                'nothing is left', CLEAN_UP)
        finally:
            state = self.state(label)
        self.assertEqual([], leftovers.of(state), state)
        self.assertEqual(('active', None, host), state.nova, state)
        self.assertEqual('ACTIVE', state.server.status)
        self.must_be_on_alone(host, state)
        if self.lab.parts.full:
            # there is something that could have been left behind
            port, = state.ports
            self.assertEqual({host: 'ACTIVE'}, port.bindings)
            self.assertEqual([(host, 'attached', True)],
                             self.attachments_of(state), state)
        return state

    def attachments_of(self, state):
        """[(host, status, whether Nova knows it)] of the volume."""
        volume, = state.volumes
        self.assertEqual('in-use', volume.status, state)
        return [(a.host, a.status, a.nova) for a in volume.attachments]

    def must_not_have_lost_writes(self, before, after, host):
        """The guest has gone on where it was, and so has its disk."""
        was_on, = before.running_on
        self.assertGreaterEqual(after.hosts[host].disk,
                                before.hosts[was_on].disk, after)
        self.assertGreaterEqual(after.hosts[host].console,
                                before.hosts[was_on].console, after)

    def must_be_as_before_the_migration(self):
        """Idle on A, where the guest goes on; the record has ended."""
        state = self.must_be_whole_on('host-a', 'after the restart')
        self.assertEqual([('host-b', 'cancelled')], state.statuses, state)
        self.must_not_have_lost_writes(self.before, state, 'host-a')

    def must_have_arrived(self):
        """On B, where the guest went on; the record says completed."""
        state = self.must_be_whole_on('host-b', 'settled')
        self.assertEqual([('host-b', 'completed')], state.statuses, state)
        self.must_not_have_lost_writes(self.before, state, 'host-b')

    def must_migrate_to(self, host):
        """The next migration does what it should."""
        before = self.lab.observe(self.server)
        self.lab.live_migrate(self.server, host)
        self.assertEqual('completed', self.lab.finish_migration(self.server))
        after = self.must_be_whole_on(host, 'after the migration to %s' % host)
        self.must_not_have_lost_writes(before, after, host)
        self.assertEqual((host, 'completed'), after.statuses[-1])

    def must_reboot_on(self, host):
        """A hard reboot starts it there, from the disk that it had."""
        before = self.lab.observe(self.server)
        emulator = self.lab.hosts[host].emulator(self.server)
        self.lab.reboot(self.server)
        self.lab.wait_until(
            lambda: [other.pid for other in self.lab.hosts[host].emulators()
                     if other.uuid == self.server] not in (
                         [], [emulator.pid]),
            self.server, 'has another QEMU on %s' % host)
        self.wait_until_settled(host)
        self.lab.wait_until(
            lambda: self.lab.hosts[host].disk_tick(self.server) >
            before.hosts[host].disk, self.server, 'writes on')
        after = self.must_be_whole_on(host, 'after the hard reboot')
        # its console is a new file, its disk is not
        self.assertGreater(after.hosts[host].disk, before.hosts[host].disk)

    def must_leave_nothing(self):
        """Once it is deleted."""
        self.lab.delete(self.server)
        try:
            waiting.wait_until(
                lambda: not leftovers.of_deleted(
                    self.lab.observe(self.server)),
                'nothing is left', CLEAN_UP)
        finally:
            state = self.state('deleted')
        self.assertEqual([], leftovers.of_deleted(state), state)

    def must_be_held(self, state):
        """Nova says MIGRATING, and refuses what users ask for."""
        self.assertEqual(('active', 'migrating', 'host-a'), state.nova, state)
        error = self.assertRaises(
            clients.ApiError, self.lab.live_migrate, self.server, 'host-c')
        self.assertEqual(409, error.status)
