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

from nova_migration_guard.cmd import errors
from nova_migration_guard import facts
from tests.unit.cmd import base
from tests.unit import test_libvirt_jobs


class ExplainTestCase(base.CommandTestCase):

    def explain(self, **answers):
        self.libvirt.domains[base.UUID] = base.Domain(base.UUID, **answers)
        shown = self.show('explain', base.UUID)
        self.assertFalse(
            {'abortJob', 'suspend', 'resume'}.intersection(
                self.libvirt.domains[base.UUID].asked))
        return shown

    def test_nothing_in_flight(self):
        shown = self.explain()
        self.assertEqual(('LEAVE', 'nothing of Nova is in flight'),
                         (shown['verdict'], shown['controlled_by']))

    def test_migration_of_a_nova_compute_that_runs(self):
        self.journal.begin(base.entry())
        self.records.show_running()
        shown = self.explain(jobStats={'type': 2, 'operation': 5})
        self.assertEqual(('ABORT', 'nova-compute', 'started'),
                         (shown['verdict'], shown['controlled_by'],
                          shown['journal_phase']))

    def test_migration_whose_job_has_ended(self):
        self.journal.begin(base.entry())
        shown = self.explain()
        self.assertEqual(('ASK', 'host-b', 'no one: nova-compute is down'),
                         (shown['verdict'], shown['destination'],
                          shown['controlled_by']))

    def test_held(self):
        """What libvirt says now is taken with what Nova has said."""
        self.hold()
        shown = self.explain()
        self.assertEqual('HOLD', shown['verdict'])
        self.assertIn('no answer within 10 s', shown['reason'])
        self.assertIn('T', shown['nova_read'])
        shown = self.explain(jobStats={'type': 2, 'operation': 5})
        self.assertEqual('ABORT', shown['verdict'])

    def test_both_sides_run(self):
        self.hold(peer=facts.Peer.RUNS)
        shown = self.explain()
        self.assertEqual('HOLD', shown['verdict'])
        self.assertIn('virsh destroy', shown['what_helps'])

    def test_operation_on_a_disk(self):
        self.journal.begin(base.swap())
        shown = self.explain(blockJobInfo={'type': 2})
        self.assertEqual('END_BLOCK_JOBS', shown['verdict'])

    def test_unknown(self):
        self.must_fail(errors.NOT_FOUND, 'no domain', 'explain', base.UUID)

    def test_libvirt_is_away(self):
        self.libvirt.error = test_libvirt_jobs.Error(38)
        self.hold()
        shown = self.show('explain', base.UUID)
        self.assertEqual('HOLD', shown['verdict'])
        self.assertIn('libvirt error 38', shown['libvirt_trouble'])

    def test_no_rights(self):
        self.hold()
        self.as_nobody()
        self.must_fail(errors.NO_RIGHTS, 'for root only', 'explain',
                       base.UUID)

    def test_no_uuid(self):
        self.must_fail(errors.USAGE, 'is no UUID', 'explain', 'vm')
