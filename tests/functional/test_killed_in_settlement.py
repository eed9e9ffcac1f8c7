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

"""nova-compute is killed at each step of a settlement, and started again."""

import itertools

from nova.compute import manager

from tests.functional import devices
from tests.functional import properties
from tests.functional import steps


class KilledInSettlementTestCase(devices.DevicesTestCase):
    """The same server, over and over: its migration is interrupted.

    Then its settlement is, at one step after the other, until there are no
    more; and each time the next start has to settle it.
    """

    #: Every how many steps; each test begins with another one, for its time.
    STRIDE = 3

    def setUp(self):
        super(KilledInSettlementTestCase, self).setUp()
        self.source, self.destination = 'host-a', 'host-b'
        self.steps = self.useFixture(steps.Steps(self))

    def kill_at_each(self, first, interrupt, check):
        """Kill nova-compute at every STRIDE-th step.

        :param first: the number of the first step
        :param interrupt: leaves a migration behind, and its source dead
        :param check: looks at everything when it is settled
        :returns: the names of all steps
        """
        for number in itertools.count(first, self.STRIDE):
            interrupt()
            killed = self._settle_until(number)
            taken = list(self.steps.taken)
            try:
                if killed:
                    self._start_and_settle()
                check()
            except Exception as e:
                raise AssertionError(
                    'killed before the last step of %s: %s' % (taken, e))
            if not killed:
                return taken

    def _start_and_settle(self):
        self.start_compute(self.source)
        self.settle(self.source)

    def _settle_until(self, number):
        """Start the source, and kill it before a step of the settlement.

        :returns: whether there is such a step
        """
        self.steps.watch(number)
        try:
            self._start_and_settle()
        except steps.Killed:
            self.kill_compute(self.source)
            return True
        return False

    def must_have_seen(self, taken, *names):
        """The steps are seen where they are taken."""
        for name in names:
            self.assertTrue(any(step.startswith(name) for step in taken),
                            '%s: %s' % (name, taken))


class KilledInRollBack(KilledInSettlementTestCase):

    def _interrupt(self):
        self.begin_migration(self.server, self.destination)
        self.kill_compute(self.source)

    @properties.guarded
    def test_steps_from_the_first_on(self):
        self._test(1)

    @properties.guarded
    def test_steps_from_the_second_on(self):
        self._test(2)

    @properties.guarded
    def test_steps_from_the_third_on(self):
        self._test(3)

    def _test(self, first):
        taken = self.kill_at_each(
            first, self._interrupt, self.must_be_as_before)
        self.must_have_seen(
            taken, 'libvirt:abortJob', 'db:action_start',
            'rpc:remove_volume_connection', 'cinder:attachment_delete',
            'db:block_device_mapping_update', 'libvirt:attachDeviceFlags',
            'placement:', 'db:instance_update', 'db:migration_update',
            'rpc:rollback_live_migration_at_destination',
            'rpc:drop_move_claim_at_destination', 'journal:end')
        self.must_live_on()


class KilledInUndo(KilledInSettlementTestCase):

    STRIDE = 1

    def _interrupt(self):
        stop = self.stop_at(self.source, manager.ComputeManager,
                            '_do_live_migration')
        self.live_migrate(self.server, self.destination)
        stop.wait()
        self.kill_compute(self.source)

    @properties.guarded
    def test_each_step(self):
        taken = self.kill_at_each(
            1, self._interrupt, self.must_be_as_before)
        self.must_have_seen(
            taken, 'db:action_start', 'placement:', 'db:instance_update',
            'db:migration_update', 'journal:end')
        self.must_live_on()


class KilledInFinish(KilledInSettlementTestCase):

    def _interrupt(self):
        job = self.begin_migration(self.server, self.destination)
        self.kill_compute(self.source)
        job.complete()

    def _check(self):
        self.must_be_on(self.destination)
        self.source, self.destination = self.destination, self.source

    @properties.guarded
    def test_steps_from_the_first_on(self):
        self._test(1)

    @properties.guarded
    def test_steps_from_the_second_on(self):
        self._test(2)

    @properties.guarded
    def test_steps_from_the_third_on(self):
        self._test(3)

    def _test(self, first):
        taken = self.kill_at_each(first, self._interrupt, self._check)
        self.must_have_seen(
            taken, 'db:action_start', 'cinder:attachment_delete',
            'files:delete_instance_files', 'db:instance_update',
            'rpc:post_live_migration_at_destination',
            'db:migration_update', 'placement:', 'journal:end')
        self.must_migrate_to('host-c')
        self.must_delete()
