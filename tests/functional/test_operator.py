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

"""An operator decides what the hosts cannot say, by the command."""

import inspect
import io
import json
import pathlib

import fixtures
from nova.compute import manager

from tests.functional import migration_job
from tests.functional import properties
from tests.functional import settlement

FOUND = 0
REFUSED = 6
PENDING = 7


class OperatorTestCase(settlement.SettlementTestCase):

    def command(self, *arguments):
        """Run nova-migration-guard on host-a; its status and its output."""
        from nova_migration_guard.cmd import app
        from nova_migration_guard.cmd import host
        config = pathlib.Path(self.journals, 'nova.conf')
        config.write_text('[DEFAULT]\nhost = host-a\n[migration_guard]\n'
                          'enabled = true\njournal_dir = %s\n' %
                          self.journals)
        jobs = self.guard_of('host-a')._jobs
        stdout, stderr = io.StringIO(), io.StringIO()
        with fixtures.MockPatchObject(host.Host, 'jobs', lambda self: jobs):
            status = app.main(
                ['--config-file', str(config)] + list(arguments),
                stdout=stdout, stderr=stderr)
        return status, stdout.getvalue() + stderr.getvalue()

    def shown(self, *arguments):
        status, said = self.command(*arguments + ('-f', 'json'))
        self.assertEqual(FOUND, status, said)
        return json.loads(said)

    def release(self, keep):
        """Say which side is kept; the settler hears of it."""
        status, said = self.command(
            'held', 'release', self.server['id'], '--keep', keep, '--yes',
            '--yes', '--wait', '0')
        self.guard_of('host-a').settle_held()
        return status, said

    def must_be_refused(self, keep, why):
        before = self.footprint(self.server)
        status, said = self.release(keep)
        if status == PENDING:
            said = self.shown('held', 'show', self.server['id'])[
                'answer_to_release']
        else:
            self.assertEqual(REFUSED, status, said)
        self.assertIn(why, said)
        self.assertIn(self.server['id'], self.held('host-a'))
        self.assertEqual(before, self.footprint(self.server))

    def must_be_released(self, keep):
        status, said = self.release(keep)
        self.assertEqual(PENDING, status, said)
        self.assertEqual({}, self.held('host-a'))
        self.assertEqual([], self.shown('held', 'list'))
        self.assertEqual([], self.shown('journal', 'list'))

    def skip_where_nova_asks(self):
        """Skip where Nova's own rollback needs the destination's answer."""
        parameters = inspect.signature(
            manager.ComputeManager._rollback_live_migration).parameters
        if self.guard and 'pre_live_migration' not in parameters:
            self.skipTest('before 24.1.1 and 25.0.1 the word is carried out '
                          'when the destination answers')

    def interrupt(self, end):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        end(job)


@properties.twice
class GuestStayed(OperatorTestCase):

    @properties.held(stock=settlement.LEFT_BEHIND)
    def test_destination_is_away(self):
        """The guest runs here; whether it does there, too, is not known."""
        self.skip_where_nova_asks()
        self.interrupt(migration_job.MigrationJob.fail)
        self.kill_compute('host-b')
        self.start_compute('host-a')
        if self.guard:
            self._decide()
        self.start_compute('host-b')
        self.must_be_as_before()
        self.must_live_on()

    def _decide(self):
        row, = self.shown('held', 'list')
        self.assertEqual(self.server['id'], row['Instance'])
        self.assertIn('host-b', row['Reason'])
        shown = self.shown('explain', self.server['id'])
        self.assertEqual(('HOLD', 'host-b', 'migrating'),
                         (shown['verdict'], shown['destination'],
                          shown['task_state']))
        self.must_be_refused('destination', 'the guest runs here')
        self.must_be_released('source')


class GuestLeft(OperatorTestCase):

    GUARD = True

    def test_destination_is_lost(self):
        """The guest is started here when its host is known to be off."""
        self.skip_where_nova_asks()
        self.interrupt(migration_job.MigrationJob.complete)
        self.crash_host('host-b')
        self.start_compute('host-a')
        self.must_be_refused('source', 'compute service set --down')
        self.must_be_refused('destination', 'does not say')
        service, = [found for found in self.api.get_services()
                    if found['host'] == 'host-b']
        self.api.put_service_force_down(service['id'], True)
        self.must_be_released('source')
        self.assertEqual(('active', None, 'host-a'),
                         self.nova_says(self.server))
        self.assertIn('host-a', self.disks(self.server))
        self.assertIn('host-b', self.disks(self.server))
        self.act(self.server, 'reboot', {'type': 'HARD'})
        self.wait_until(
            lambda: self.where(self.server).get('host-a') == 'running' and
            not self.nova_says(self.server).task_state, 'it runs here')
        self.assertEqual(set(), self.world.ran_twice)

    def test_guest_does_not_run_at_the_destination(self):
        """It was paused there by hand, and Nova says that it is active."""
        self.interrupt(migration_job.MigrationJob.complete)
        there = self.hypervisor('host-b').domains[self.server['id']]
        there.suspend()
        self.start_compute('host-a')
        self.must_be_refused('source', 'End it there first')
        self.must_be_released('destination')
        self.assertEqual('host-b', self.nova_says(self.server).host)
        self.assertEqual({'host-b': 'paused'}, self.where(self.server))
        there.resume()
        self.must_be_on('host-b')
