# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The start of nova-compute, by the number of its instances.

``ComputeManager.init_host`` over and over on one nova-compute, whose guests
run and are idle. ``NMG_SIZES`` and ``NMG_ROUNDS`` say otherwise how many
instances there are, and how often each start is run.
"""

import collections
import contextlib
import inspect
import os
from unittest import mock

import fixtures

from nova.compute import manager as compute_manager
from nova import context
from nova import objects

from tests.benchmarks import measuring
from tests.functional import cloud
from tests.functional import instances
from tests.functional import properties
from tests.functional import queries

SIZES = [int(size) for size in
         os.environ.get('NMG_SIZES', '1 10 100 1000').split()]
ROUNDS = int(os.environ.get('NMG_ROUNDS', '11'))

#: The functions that the guard wraps for a start.
WRAPPED = ('init_host', 'init_virt_events', '_init_instance')

#: What the guard may ask the database, whatever the number of instances.
QUERIES = 2


class Starts(instances.Instances, cloud.CloudTestCase):

    # nothing is held here, and nothing may run out of time
    GUARD_OPTIONS = dict(cloud.CloudTestCase.GUARD_OPTIONS,
                         startup_timeout=300, call_timeout=60)

    def setUp(self):
        super(Starts, self).setUp()
        self.start_host('host-a')
        self.manager = self.processes['host-a'].manager
        # the driver's own initialisation is the same, and starts threads
        self.useFixture(fixtures.MockPatchObject(
            type(self.manager.driver), 'init_host', lambda *a, **kw: None))
        self.arguments = [None] * (len(inspect.signature(
            self.manager.init_host).parameters))
        if self.arguments:
            self.arguments = [objects.Service.get_by_compute_host(
                context.get_admin_context(), 'host-a')]

    def _guarded(self):
        from nova_migration_guard import guards
        self.manager.init_host(*self.arguments)
        guards.for_manager(self.manager).stop()

    def _stock(self):
        """The same without the guard's wrappers."""
        owner = compute_manager.ComputeManager
        with contextlib.ExitStack() as stack:
            for name in WRAPPED:
                stack.enter_context(mock.patch.object(
                    owner, name, vars(owner)[name].__wrapped__))
            self.manager.init_host(*self.arguments)

    def _count(self, name, run):
        """Count what a start asks of the database and of libvirt."""
        calls = self.hypervisor('host-a').calls
        before = collections.Counter(calls)
        with queries.Calls() as asked:
            run()
        return {name + ' queries': len(asked.names),
                name + ' calls': calls - before}

    @properties.guarded
    def test_start(self):
        there = 0
        for size in SIZES:
            self.add_instances(size - there, 'host-a')
            there = size
            self._stock()
            self._guarded()
            counts = dict(self._count('stock', self._stock),
                          **self._count('guarded', self._guarded))
            self.assertEqual({}, self.held('host-a'))
            measuring.write('start', size=size, **dict(
                measuring.summary(measuring.turn_about(
                    self._stock, self._guarded, ROUNDS)), **counts))
            self.assertLessEqual(
                counts['guarded queries'] - counts['stock queries'], QUERIES)
