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

"""One resource audit of a host, by the number of its instances.

``NMG_SIZES`` and ``NMG_ROUNDS`` say otherwise how many instances there are,
and how often each audit is run.
"""

import os
from unittest import mock

from nova.compute import resource_tracker
from nova import context as nova_context

from tests.benchmarks import measuring
from tests.functional import cloud
from tests.functional import instances
from tests.functional.interleavings import database
from tests.functional import properties
from tests.functional import queries

SIZES = [int(size) for size in
         os.environ.get('NMG_SIZES', '0 100 1000').split()]
ROUNDS = int(os.environ.get('NMG_ROUNDS', '15'))

#: How many audits are counted.
COUNTED = 5

#: The functions that the guard wraps for an audit.
WRAPPED = ('_update_usage_from_instances', '_update_usage_from_migrations',
           '_update_usage_from_migration')

#: What the guard may cost where nothing moves.
QUERIES = 1


class Audits(instances.Instances, cloud.CloudTestCase):

    def setUp(self):
        super(Audits, self).setUp()
        self.start_host('host-a')
        self.queries = self.useFixture(queries.Queries(
            database.cell_manager(self)))
        self.tracker = self.processes['host-a'].manager.rt

    def _guarded(self):
        self.tracker.update_available_resource(
            nova_context.get_admin_context(), 'host-a')

    def _stock(self):
        """The same without the guard's wrappers."""
        owner = resource_tracker.ResourceTracker
        patches = [mock.patch.object(owner, name,
                                     vars(owner)[name].__wrapped__)
                   for name in WRAPPED]
        for patch in patches:
            patch.start()
        try:
            self._guarded()
        finally:
            for patch in patches:
                patch.stop()

    def _count(self, name, run):
        """Count what an audit asks of the database.

        An audit also saves its node when something of the host has changed,
        its free disk for one: so the one of several that asks least is taken.
        """
        found = []
        for _ in range(COUNTED):
            run()
            functions, _, statements = self.queries.of_last('host-a')
            found.append((len(functions), statements))
        return {name + ' queries': min(found)[0],
                name + ' statements': min(found)[1]}

    @properties.guarded
    def test_audit(self):
        there = 0
        for size in SIZES:
            self.add_instances(size - there, 'host-a', running=False)
            there = size
            # neither is the first to meet these instances, or saves what
            # they have changed
            self._stock()
            self._guarded()
            counts = dict(self._count('stock', self._stock),
                          **self._count('guarded', self._guarded))
            self.assertEqual(size, len(self.tracker.tracked_instances))
            measuring.write('audit', size=size, **dict(
                measuring.summary(measuring.turn_about(
                    self._stock, self._guarded, ROUNDS)), **counts))
            self.assertLessEqual(
                counts['guarded queries'] - counts['stock queries'], QUERIES)
