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

"""The guest arrives on B while nobody on A looks.

nova-compute of A is down when libvirt ends the migration, or dies in its
post-migration.
"""

import signal

from tests.lab import base
from tests.lab import migration
from tests.lab import variants


class GuardedTestCase(migration.MigrationTestCase):
    """With the guard: it is finished, not forgotten."""

    guard = True

    def must_be_as_any_other_server(self):
        """On B, it can be rebooted and deleted."""
        self.must_have_arrived()
        self.must_reboot_on('host-b')
        self.must_leave_nothing()

    def finish_while_down(self, signum):
        self.begin()
        self.lab.kill_compute('host-a', signum)
        self.let_libvirt_finish()
        state = self.state('the migration has ended')
        self.assertEqual(('active', 'migrating', 'host-a'), state.nova, state)
        self.assertEqual(['host-b'], state.running_on, state)
        self.lab.start_compute('host-a')
        self.wait_until_settled('host-b')
        self.must_be_as_any_other_server()

    def test_killed(self):
        self.finish_while_down(signal.SIGKILL)

    @base.in_ci(base.FULL)
    def test_terminated(self):
        self.finish_while_down(signal.SIGTERM)

    @base.in_ci(base.FULL)
    def test_killed_in_post_migration(self):
        """A has given up what it had, and B has not taken over yet."""
        self.begin()
        variants.killed_after_switch_over(self.lab, self.server)
        self.wait_until_settled('host-b')
        self.must_be_as_any_other_server()

    def test_killed_once_more_while_it_is_finished(self):
        self.begin()
        self.lab.kill_compute('host-a')
        self.let_libvirt_finish()
        self.lab.start_compute('host-a', wait=False)
        self.lab.wait_until(
            lambda: self.lab.parts.services.computes['host-a'].has_logged(
                b'finish the migration'), self.server, 'is being finished')
        self.lab.kill_compute('host-a')
        self.state('killed once more')
        self.lab.start_compute('host-a')
        self.wait_until_settled('host-b')
        self.must_be_as_any_other_server()

    def test_killed_when_the_destination_has_taken_over(self):
        """Nova says B, and A has not cleaned up or ended the record."""
        self.begin()
        self.lab.throttle(self.server, 0)
        self.lab.wait_until(
            lambda: self.lab.nova_says(self.server)[2] == 'host-b',
            self.server, 'is on host-b', interval=0.05)
        self.lab.kill_compute('host-a')
        self.state('host-b has taken over')
        self.lab.start_compute('host-a')
        self.wait_until_settled('host-b')
        self.must_be_as_any_other_server()


class KilledTwiceTestCase(migration.MigrationTestCase):
    """nova-compute of A dies again while the guard rolls back."""

    guard = True

    @base.in_ci(base.FULL)
    def test_when_the_job_has_just_been_aborted(self):
        self.begin()
        variants.killed_twice(self.lab, self.server)
        self.wait_until_settled()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-b')
