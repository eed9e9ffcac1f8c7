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

"""Runs an operation, kills nova-compute at a point of it, and judges."""

import os
import threading
import time

import fixtures

from nova_migration_guard.nova_host import host as nova_host
from tests.functional.crash_points import durability
from tests.functional.crash_points import judging
from tests.functional.crash_points import operations
from tests.functional.crash_points import points
from tests.functional import settlement
from tests.functional import waiting

#: Seconds without an effect after which nothing more is to come.
QUIET = 0.6

#: Seconds until an instance has to be settled.
PATIENCE = 20


#: Between the points of two kills.
THEN = ' then '


class Cell(object):
    """One kill: at which point of what, and what came of it.

    Where the second process is killed, too, at a point of the settlement, the
    point is two, with ``THEN`` between them.

    :ivar reached: whether the operation came to the point
    :ivar had_job: whether libvirt ran a job when the process was killed;
        without one all worlds are the same
    :ivar violations: [:class:`~.judging.Violation`]
    :ivar story: what was to be seen, in words
    """

    def __init__(self, operation, side, point, world):
        self.operation = operation
        self.side = side
        self.point = point
        self.world = world
        self.reached = False
        self.had_job = False
        self.violations = []
        self.story = ''

    @property
    def first(self):
        return self.point.partition(THEN)[0]

    @property
    def second(self):
        """The second kill's point; '' where its effects are named only."""
        return self.point.partition(THEN)[2] if THEN in self.point else None

    @property
    def command(self):
        return ("crash-points --operation %s --side %s --step '%s' "
                '--world %s' % (self.operation, self.side, self.point,
                                self.world))

    def __str__(self):
        return '%s: %s' % (self.command, '; '.join(
            '%s, %s' % violation for violation in self.violations) or
            ('no violation' if self.reached else 'not reached'))


class CrashPointTestCase(settlement.SettlementTestCase):
    """Two hosts that are used for one cell after the other."""

    #: What nova-compute is killed in: a class of :mod:`.operations`.
    OPERATION = operations.LiveMigration

    #: Seconds that a job lives on after its abort.
    ABORT_TIME = 0.25

    def setUp(self):
        super(settlement.SettlementTestCase, self).setUp()
        self.enable_volumes()
        self.points = self.useFixture(points.Points(self))
        self.durability = self.useFixture(durability.Durability())
        self.OPERATION.set_up(self)
        # not before the points have wrapped it
        self.OPERATION.start_hosts(self)
        self.empty = judging.usage(self)
        self._hours = 0
        self._jobs_of_killed = []
        clock = self.useFixture(fixtures.MockPatchObject(
            nova_host, 'time')).mock
        clock.time = lambda: time.time() + 3600 * self._hours
        self._outruns = False
        for hypervisor in self.world.hypervisors.values():
            hypervisor.abort = self._abort

    def _abort(self, job):
        """QEMU takes a moment to end a job."""
        if job.postcopy:
            return self.hypervisor(job.source.host).abort_works(job)
        job.cancelling = True
        outruns = self._outruns

        def end():
            if job.running and outruns:
                job.complete()
            elif job.running:
                job.cancel()

        def end_later():
            time.sleep(self.ABORT_TIME)
            end()
        if not self.ABORT_TIME:
            return end()
        thread = threading.Thread(target=end_later)
        thread.daemon = True
        thread.start()

    # ---- one cell

    def record(self):
        """Run the operation undisturbed.

        :returns: {side: the names of the effects}
        """
        operation = self.OPERATION(self)
        self._prepare(operation)
        self.points.watch(*operation.SIDES.values())
        operation.begin()
        self._play(operation)
        self.points.stop_watching()
        operation.come_back()
        left = self._delete()
        assert not left or not operation.IS_DRIVEN, left
        operation.clean_up()
        return {side: list(self.points.taken[host])
                for side, host in operation.SIDES.items()}

    def footprint(self, server):
        found = super(CrashPointTestCase, self).footprint(server)
        if self.OPERATION.DEVICES:
            found["guest's devices"] = {
                host: self.devices_of_guest(host, server)
                for host in self.processes}
            found['pinned CPUs'] = {
                host: self.pinned_cpus(host) for host in self.processes}
        return found

    def _prepare(self, operation):
        self.server = operation.boot()
        self._until_quiet()
        self.before = dict(self.footprint(self.server),
                           usage=judging.usage(self))

    def _play(self, operation):
        """Let an operation go on to its end, or to the point."""
        def over():
            if self.points.reached:
                return True
            return operation.go_on() and self._is_quiet()
        waiting.wait_until(over, 'the operation ends', interval=0.1)

    def run_cell(self, cell):
        """Kill nova-compute at a point, let it start again, and judge.

        :param cell: a :class:`Cell`, which is filled in
        """
        operation = self.OPERATION(self)
        host = operation.SIDES[cell.side]
        self._hours, self._early = 0, []
        #: the names of the effects of the settlement that is to be killed
        self.settlement = []
        self._outruns = cell.world == operations.OUTRUNS
        self._prepare(operation)
        self.points.watch(host, point=cell.first)
        operation.begin()
        self._play(operation)
        self.points.stop_watching()
        cell.reached = self.points.reached
        if cell.reached:
            cell.had_job = operation.job() is not None
            self._die_and_live(operation, host, cell)
        cell.violations = self._judged(operation, cell)
        operation.clean_up()

    def _die_and_live(self, operation, host, cell):
        self.kill_compute(host)
        if self.guard:
            self.durability.lose(os.path.join(self.journals, host))
        if cell.side == operations.SOURCE and cell.had_job:
            self._jobs_of_killed.append(operation.job())
        killed_source = cell.side == operations.SOURCE
        if cell.had_job:
            operation.world_goes_on(cell.world)
        if cell.second is None:
            self._start_and_settle(host)
        else:
            self._die_again(host, cell)
        self._early = self._judge().of_jobs()
        if killed_source:
            operation.unowned_job_ends()
        self.points.let_callers_time_out()
        # what a killed process had begun counts no longer, by now
        self._hours = 1
        self._come_to_rest(operation, killed_source)
        operation.come_back()
        if not operation.IS_DRIVEN:
            self._come_to_rest(operation, killed_source)
        self._audit()
        self._audit()

    def _start_and_settle(self, host):
        self.start_compute(host)
        if self.guard:
            self.guard_of(host).settle_held()

    def _die_again(self, host, cell):
        self.points.watch(host, point=cell.second, settling=True)
        try:
            self._start_and_settle(host)
        except points.Killed:
            self.kill_compute(host)
            self.durability.lose(os.path.join(self.journals, host))
            self._start_and_settle(host)
        cell.reached = self.points.reached
        self.settlement = list(self.points.taken[host])
        self.points.stop_watching()

    def audit(self, host):
        # one in which a process was killed has logged an error of its own
        del self.records.records[:]
        super(CrashPointTestCase, self).audit(host)

    def _audit(self):
        for host in list(self.processes):
            self.audit(host)

    def _come_to_rest(self, operation, killed_source):
        def at_rest():
            if not killed_source and operation.job() is not None:
                operation.go_on()
                return False
            if self.guard:
                for host in list(self.processes):
                    if self.held(host):
                        self.guard_of(host).settle_held()
            return self._is_quiet() and (not self.guard or not any(
                self.held(host) for host in self.processes))
        try:
            waiting.wait_until(at_rest, 'it comes to rest', timeout=PATIENCE)
        except waiting.WaitTimeout:
            # what is not settled by then is a violation
            pass

    def _is_quiet(self):
        return not self.points.working() and (
            time.monotonic() - self.points.last_effect > QUIET)

    def _until_quiet(self):
        waiting.wait_until(self._is_quiet, 'nothing more happens',
                           interval=0.1)

    def _judge(self):
        return judging.Judge(
            self, self.server, self.before, self.OPERATION.SHARED,
            lambda job: job in self._jobs_of_killed)

    def _judged(self, operation, cell):
        if not operation.IS_DRIVEN:
            return self._judged_move(operation, cell)
        if not cell.reached:
            # it came to its end without; nothing is said of that
            self._delete()
            return []
        found = (self._early + self._judge().violations() +
                 operation.violations())
        cell.story = self._story()
        if not found:
            found = self._use(cell)
        return found

    def _judged_move(self, operation, cell):
        if not cell.reached:
            operation.come_back()
        found = operation.judged()
        cell.story = self._story()
        try:
            left = self._delete()
        except Exception as e:
            left = [judging.Violation('', '%s: %s' % (type(e).__name__, e))]
        return found + [judging.Violation(judging.LEFT, seen)
                        for _, seen in left]

    def _story(self):
        held = {host: [held.reason for held in self.held(host).values()]
                for host in self.processes} if self.guard else {}
        return '%s, records %s, guest %s%s' % (
            tuple(self.nova_says(self.server)),
            self.migration_statuses(self.server), self.where(self.server),
            ', held: %s' % held if any(held.values()) else '')

    def _use(self, cell):
        """The next migration, and the end of the instance."""
        says = self.nova_says(self.server)
        try:
            if says.vm_state == 'error':
                cell.story += '; an operator resets the state'
                self.act(self.server, 'os-resetState', {'state': 'active'})
            other = {'host-a': 'host-b', 'host-b': 'host-a'}[says.host]
            self.begin_migration(self.server, other).complete()
            waiting.wait_until(
                lambda: self.migrations(self.server)[-1].status ==
                'completed' and self._is_quiet(),
                lambda: 'the next migration is %s' %
                self.migration_statuses(self.server), timeout=PATIENCE)
            self._audit()
            found = self._judge().violations()
        except Exception as e:
            return [judging.Violation(judging.USE, '%s: %s' % (
                type(e).__name__, e))]
        if found:
            return [judging.Violation(
                rule, 'after the next migration: ' + seen)
                for rule, seen in found]
        return self._delete()

    def _delete(self):
        migrations = [migration.uuid
                      for migration in self.migrations(self.server)]
        self.delete(self.server)
        self._until_quiet()
        self._audit()
        left = judging.leftovers(self, self.server, migrations)
        # nor is it to bear on the next server
        for bindings in getattr(self.neutron, '_port_bindings', {}).values():
            bindings.clear()
        return left
