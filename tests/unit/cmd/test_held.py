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

import io

from nova_migration_guard.cmd import app
from nova_migration_guard.cmd import errors
from nova_migration_guard import held
from tests.unit.cmd import base


class HeldListTestCase(base.CommandTestCase):

    def test_nothing(self):
        self.assertEqual([], self.show('held', 'list'))

    def test_held(self):
        self.hold()
        row, = self.show('held', 'list')
        self.assertEqual(
            {'Instance': base.UUID, 'Since': '1970-01-01T00:16:40Z',
             'Attempts': 3, 'Reason': 'host-b does not answer'},
            {name: row[name] for name in row if name != 'Next attempt'})
        self.assertIn('No guarded nova-compute runs here', self.stderr)

    def test_nova_compute_runs(self):
        self.hold()
        self.records.show_running()
        self.show('held', 'list')
        self.assertEqual('', self.stderr)

    def test_formats(self):
        self.hold()
        for name in ('table', 'json', 'yaml', 'csv', 'value'):
            self.assertEqual(0, self.run_command('held', 'list', '-f', name))
            self.assertIn(base.UUID, self.stdout)

    def test_unknown_format(self):
        self.must_fail(errors.USAGE, 'xml', 'held', 'list', '-f', 'xml')

    def test_damaged(self):
        self.hold()
        path = self.folder / held.FOLDER / (base.UUID + held.ENDING)
        path.write_text('{"version": 1, ')
        row, = self.show('held', 'list')
        self.assertIn('damaged', row['Reason'])
        self.assertTrue(path.exists())
        self.must_fail(errors.FAILED, 'damaged', 'held', 'show', base.UUID)

    def test_no_rights(self):
        self.hold()
        self.as_nobody()
        self.must_fail(errors.NO_RIGHTS, 'for root only', 'held', 'list')

    def test_not_enabled(self):
        self.config.write_text('[DEFAULT]\nstate_path = %s\n' % self.top)
        self.assertEqual([], self.show('held', 'list'))
        self.assertIn('enabled is not set', self.stderr)


class HeldShowTestCase(base.CommandTestCase):

    def test_held(self):
        self.hold()
        self.records.show_running()
        shown = self.show('held', 'show', base.UUID.upper())
        self.assertEqual(
            {'instance': base.UUID, 'host': base.HOST, 'attempts': 3,
             'reason': 'host-b does not answer', 'verdict': 'HOLD',
             'task_state': 'migrating', 'destination': 'host-b',
             'guest': 'the guest is here', 'job': 'no job',
             'nova_compute_runs': True,
             'open_migrations': '7 (running) to host-b'},
            {name: shown[name] for name in (
                'instance', 'host', 'attempts', 'reason', 'verdict',
                'task_state', 'destination', 'guest', 'job',
                'nova_compute_runs', 'open_migrations')})
        self.assertIn('Bring its nova-compute back', shown['what_helps'])

    def test_nova_compute_is_down(self):
        self.hold()
        shown = self.show('held', 'show', base.UUID)
        self.assertEqual('when nova-compute starts', shown['next_attempt'])
        self.assertIn('Start nova-compute', shown['what_helps'])

    def test_without_facts(self):
        self.records.write(base.UUID, held.Held('no conductor'), None)
        shown = self.show('held', 'show', base.UUID)
        self.assertEqual('no conductor', shown['reason'])

    def test_not_held(self):
        self.must_fail(errors.NOT_FOUND, 'is not held on host-a',
                       'held', 'show', base.UUID)

    def test_no_uuid(self):
        self.must_fail(errors.USAGE, '"vm1" is no UUID',
                       'held', 'show', 'vm1')


class GeneralTestCase(base.CommandTestCase):

    def test_no_command(self):
        stderr = io.StringIO()
        self.assertEqual(errors.USAGE, app.main([], stderr=stderr))
        self.assertIn('--config-file', stderr.getvalue())

    def test_unknown_command(self):
        self.assertEqual(errors.USAGE, self.run_command('hold', 'list'))

    def test_no_configuration(self):
        self.config.unlink()
        self.must_fail(errors.FAILED, 'nova.conf', 'held', 'list')

    def test_bad_configuration(self):
        self.config.write_text('[migration_guard]\nenabled = perhaps\n')
        self.must_fail(errors.FAILED, 'enabled', 'held', 'list')

    def test_configuration_of_another_user(self):
        self.parent.mkdir()
        self.config.chmod(0)
        self.as_nobody()
        self.must_fail(errors.NO_RIGHTS, 'as root', 'held', 'list')

    def test_completion(self):
        self.assertEqual(0, self.run_command('complete'))
        self.assertIn("cmds_held='list ", self.stdout)

    def test_help_needs_no_configuration(self):
        self.config.unlink()
        try:
            self.assertEqual(0, self.run_command('help', 'held', 'show'))
        except SystemExit as e:
            self.assertEqual(0, e.code)
        self.assertIn('INSTANCE', self.stdout)
