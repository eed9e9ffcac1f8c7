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

"""All interleavings of a move from one cell to another."""

from nova import context as nova_context
from nova import objects

from tests.functional.interleavings import database
from tests.functional.interleavings import moves
from tests.functional.interleavings import testcase


class TwoCellsTestCase(testcase.InterleavingsTestCase):
    """Each of the two hosts is in a cell of its own.

    Nothing can be run for real here: Nova's fixtures let one thread at a time
    be in another cell than the others, so a move that is held there would hold
    the audit as well.
    """

    NUMBER_OF_CELLS = 2
    CELLS = {moves.A: 'cell1', moves.B: 'cell2'}

    def setUp(self):
        super(TwoCellsTestCase, self).setUp()
        self.policy.set_rules({
            'compute:servers:resize:cross_cell': 'rule:admin_api'},
            overwrite=False)
        self.flags(rpc_response_timeout=60, long_rpc_timeout=120)

    def cell_of(self, host):
        return {'cell_name': self.CELLS[host]}

    def _context(self, cell):
        context = nova_context.get_admin_context()
        context.db_connection = database.cell_manager(self, cell)
        return context

    def context_on(self, host):
        return self._context(self.CELLS[host])

    def context_of(self, server):
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            nova_context.get_admin_context(), server['id'])
        return self._context(mapping.cell_mapping.name)
