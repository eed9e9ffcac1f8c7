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

"""Whatever happens in whatever order: R1 to R4 hold after each step.

Random sequences of what users, operators, libvirt and power cuts do to one
guest on two hosts, against the real verdicts and settlements.
"""

import logging
import shutil
import tempfile
import types

import fixtures
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import stateful
from hypothesis import strategies
from oslotest import base

from nova_migration_guard import peers
from tests.unit.model import two_hosts

UUID = two_hosts.UUID


def options():
    return types.SimpleNamespace(
        mode='enforce', on_restart='abort', libvirt_workers=4,
        foreign_block_jobs='report', block_jobs=True, abort_timeout=1,
        startup_timeout=10, call_timeout=5, settle_interval=3600,
        settle_interval_max=3600, journal_dir='', journal_required=True,
        peer_libvirt=False)


class OneGuestOnTwoHosts(stateful.RuleBasedStateMachine):

    def __init__(self):
        super(OneGuestOnTwoHosts, self).__init__()
        logging.disable(logging.CRITICAL)
        self.folder = tempfile.mkdtemp()
        self.world = two_hosts.World(self.folder)
        #: whether an operator's word counts until the guard's next attempt
        self.reset = False
        for host in ('a', 'b'):
            self._start(host)

    def _start(self, host):
        chosen = options()
        chosen.journal_dir = self.folder
        try:
            two_hosts.Process(self.world, host, chosen).start()
        except two_hosts.Killed:
            assert self.world.processes[host] is None

    def _process(self):
        """The nova-compute that Nova sends requests for the guest to."""
        return self.world.processes[self.world.host]

    def _accepted(self):
        """Whether Nova's API accepts an action, and someone carries it out."""
        return (not self.world.deleted and self.world.task_state is None and
                self._process() is not None)

    def _settle(self, host):
        process = self.world.processes[host]
        if process is not None:
            process.guard.settle_held()
            if host == self.world.host:
                self.reset = False

    def _held(self):
        process = self._process()
        return process is not None and UUID in process.guard.held

    # ---- what users and operators do

    @stateful.initialize(dies=strategies.sampled_from([True, True, False]),
                         peer_dies=strategies.booleans(),
                         fate=strategies.sampled_from(
                             ['goes on', 'completes', 'fails']))
    def begin(self, dies, peer_dies, fate):
        """What can go wrong begins with a migration."""
        self.world.begin_migration()
        if dies:
            self.world.processes['a'].kill()
        if peer_dies:
            self.world.processes['b'].kill()
        if fate == 'completes':
            self.libvirt_finishes()
        elif fate == 'fails':
            self.libvirt_fails()

    @stateful.precondition(lambda self: self._accepted() and
                           not self._held() and
                           self.world.vm_state == 'active' and
                           self.world.processes[self.world.other(
                               self.world.host)] and
                           self.world.domains.get(
                               self.world.host) == 'running')
    @stateful.rule()
    def migrate(self):
        assert self.world.job is None, 'a second migration was accepted'
        assert not self.world.taken
        self.world.begin_migration()

    @stateful.precondition(lambda self: self._accepted())
    @stateful.rule()
    def stop(self):
        if self.world.host in self.world.domains:
            self.world.domains[self.world.host] = 'off'
        self.world.vm_state = 'stopped'

    @stateful.precondition(lambda self: self._accepted())
    @stateful.rule()
    def start_or_reboot(self):
        process = self._process()
        try:
            process.guard.must_not_be_held(two_hosts.Instance(self.world))
        except two_hosts.Away:
            return
        self.world.start_guest(self.world.host)
        self.world.vm_state = 'active'

    @stateful.precondition(lambda self: not self.world.deleted and
                           self._held())
    @stateful.rule(patience=strategies.integers(0, 4))
    def delete_what_is_held(self, patience):
        """The API accepts a deletion in every state."""
        if patience:
            return
        self.world.task_state = 'deleting'
        self._process().guard.delete(
            None, two_hosts.Instance(self.world), [], None)
        if self.world.deleted:
            assert not self.world.domains, 'the guest outlives its server'

    @stateful.precondition(lambda self: not self.world.deleted)
    @stateful.rule(reboots=strategies.booleans())
    def reset_state(self, reboots):
        """An operator does not believe that the instance is held."""
        job = self.world.job
        if job is not None and job.controller is not None:
            return
        self.world.vm_state = 'active'
        self.world.task_state = None
        self.reset = True
        if reboots and self._process() is not None:
            self.start_or_reboot()

    # ---- what libvirt does

    @stateful.precondition(lambda self: self.world.job)
    @stateful.rule()
    def libvirt_finishes(self):
        job = self.world.complete()
        process = job.controller
        if process is not None:
            process.guard.operations.post_migration(
                two_hosts.Instance(self.world), job.destination,
                lambda: self._novas(process).finish(
                    None, None, self.world.open_records()))

    @stateful.precondition(lambda self: self.world.job)
    @stateful.rule()
    def libvirt_fails(self):
        job = self.world.fail()
        process = job.controller
        if process is not None:
            process.guard.operations.rollback(
                two_hosts.Instance(self.world),
                lambda: self._novas(process).roll_back(
                    None, None, self.world.open_records(), None))

    @staticmethod
    def _novas(process):
        return two_hosts.Migrations(process)

    @stateful.rule(works=strategies.booleans())
    def abort(self, works):
        self.world.aborts = works

    # ---- what happens to processes

    @stateful.rule(host=strategies.sampled_from('ab'))
    def kill(self, host):
        process = self.world.processes[host]
        if process is not None:
            process.kill()

    @stateful.rule(host=strategies.sampled_from('ab'),
                   resumes=strategies.booleans())
    def start(self, host, resumes):
        self.world.resumes = resumes
        if self.world.processes[host] is None:
            self._start(host)

    @stateful.rule(host=strategies.sampled_from('ab'),
                   steps=strategies.integers(1, 30))
    def start_and_die(self, host, steps):
        if self.world.processes[host] is None:
            self.world.dies_in = steps
            self._start(host)
            self.world.dies_in = None

    @stateful.rule(host=strategies.sampled_from('ab'))
    def settle(self, host):
        self._settle(host)

    @stateful.rule(host=strategies.sampled_from('ab'),
                   steps=strategies.integers(1, 30))
    def settle_and_die(self, host, steps):
        self.world.dies_in = steps
        self._settle(host)
        self.world.dies_in = None

    # ---- the rules

    @stateful.invariant()
    def r1_no_unowned_job_behind_an_idle_instance(self):
        job = self.world.job
        if (job is not None and job.controller is None and
                self.world.processes[job.source] is not None and
                not self.world.deleted and not self.reset):
            assert self.world.task_state is not None

    @stateful.invariant()
    def r2_never_two_qemus(self):
        assert len(self.world.running) < 2

    @stateful.invariant()
    def r3_the_only_good_disk_is_kept(self):
        if not self.world.deleted:
            assert 'good' in self.world.disks.values(), self.world.disks

    def teardown(self):
        """R4: when all is up again, every migration has ended."""
        self.world.dies_in = None
        self.world.aborts = True
        self.world.resumes = False
        for host in ('a', 'b'):
            if self.world.processes[host] is None:
                self._start(host)
        if self.world.job is not None:
            self.libvirt_finishes()
        for _ in range(3):
            for host in ('a', 'b'):
                self._settle(host)
        for process in self.world.processes.values():
            process.guard.stop()
            if not self.world.deleted:
                assert not process.guard.held, process.guard.held
                assert not process.guard._journal.entries()
        shutil.rmtree(self.folder)
        logging.disable(logging.NOTSET)
        if self.world.deleted:
            return
        assert not self.world.open_records()
        assert not self.world.taken, self.world.taken
        assert self.world.task_state is None
        assert set(self.world.domains) <= {self.world.host}
        assert list(self.world.disks) == [self.world.host]
        assert self.world.disks[self.world.host] == 'good'
        self.r2_never_two_qemus()


class TwoHostsTestCase(base.BaseTestCase):

    def setUp(self):
        super(TwoHostsTestCase, self).setUp()
        # the model's hosts die, its network does not
        self.useFixture(fixtures.MockPatchObject(
            peers.Peers, 'reachable', lambda asked, peer: True))

    def test_any_order_of_events(self):
        stateful.run_state_machine_as_test(
            OneGuestOnTwoHosts, settings=settings(
                max_examples=200, stateful_step_count=25, deadline=None,
                derandomize=True, print_blob=False,
                suppress_health_check=list(HealthCheck)))
