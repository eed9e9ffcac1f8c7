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

"""The moves that the guard does not drive, and must not make worse.

Stock Nova leaves a good deal behind where nova-compute is killed in one of
them. Of the rules those are judged that concern every move: what a guest uses
is not free (R6), and it does not run twice (R2). Disks are not: the model has
none of a cold migration's. What stays when the server was deleted is named
``left``, and counts where stock Nova leaves nothing.
"""

from tests.functional.crash_points import judging
from tests.functional.crash_points import operations
from tests.functional import releases

SOURCE, DESTINATION = operations.SOURCE, operations.DESTINATION
A, B = 'host-a', 'host-b'


class Move(operations.LiveMigration):
    """A move from A to B of a guest with a virtual function and a CPU."""

    DEVICES = True
    IS_DRIVEN = False

    @staticmethod
    def set_up(test):
        operations.Devices.set_up(test)
        # no agent says that a port is plugged
        test.flags(vif_plugging_timeout=0, vif_plugging_is_fatal=False)

    @staticmethod
    def start_hosts(test):
        for host in (A, B):
            test.start_host(host, releases.pci_devices(1, 2))
        test.pinned = test.create_flavor({'hw:cpu_policy': 'dedicated'})
        test.bigger = test.create_flavor({'hw:cpu_policy': 'dedicated'},
                                         name='bigger', ram=1024)

    def boot(self):
        # what a port has kept of its last host is not to bear on the next
        # guest
        self._port = self.test.create_sriov_port(1)
        return self.test.boot(A, flavor=self.test.pinned, networks=[
            {'port': self._port}])

    def clean_up(self):
        self.test.neutron.delete_port(self._port)

    def job(self):
        return None

    def go_on(self):
        says = self.test.nova_says(self.test.server)
        return says.task_state is None and (
            says.vm_state == 'error' or self.has_ended(says))

    def judged(self):
        """The rules that concern every move: [Violation]."""
        found = []
        test, server = self.test, self.test.server

        def must(rule, condition, seen):
            if not condition:
                found.append(judging.Violation(rule, str(seen)))
        must('R2', server['id'] not in test.world.ran_twice,
             'the guest ran on two hosts')
        for host in test.running_on(server):
            uses = test.devices_of_guest(host, server)
            claimed = test._devices_of(host, server)
            must('R6', set(uses) <= set(claimed),
                 'the guest on %s uses %s, and has claimed %s' % (
                     host, uses, claimed))
            must('R6', test.pinned_cpus(host),
                 'the pinned CPU of the guest on %s is free' % host)
        return found


class ColdMigration(Move):

    NAME = 'cold-migration'

    def begin(self):
        self.test.act(self.test.server, 'migrate')

    @staticmethod
    def has_ended(says):
        return says.vm_state == 'resized'


class Resize(ColdMigration):

    NAME = 'resize'

    def begin(self):
        self.test.act(self.test.server, 'resize', {
            'flavorRef': self.test.bigger})


class _Resized(Move):

    def boot(self):
        server = super(_Resized, self).boot()
        self.test.act(server, 'migrate')
        return self.test.wait_for_server(
            server, lambda s: s['status'] == 'VERIFY_RESIZE')

    @staticmethod
    def has_ended(says):
        return says.vm_state == 'active'


class Confirm(_Resized):

    NAME = 'confirm-resize'

    def begin(self):
        self.test.act(self.test.server, 'confirmResize')


class Revert(_Resized):

    NAME = 'revert-resize'

    def begin(self):
        self.test.act(self.test.server, 'revertResize')


class Evacuation(Move):
    """A has lost power; it comes back when B has started again."""

    NAME = 'evacuation'
    SIDES = {DESTINATION: B}

    def boot(self):
        server = super(Evacuation, self).boot()
        self.test.crash_host(A)
        self.test.force_down(A)
        return server

    def begin(self):
        self.test.evacuate(self.test.server, B)

    @staticmethod
    def has_ended(says):
        return says.host == B and says.vm_state == 'active'

    def come_back(self):
        self.test.revive_host(A)
        self.test.force_up(A)


OPERATIONS = {operation.NAME: operation for operation in (
    ColdMigration, Resize, Confirm, Revert, Evacuation)}
