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

"""What nova-migration-guard shows of a real libvirt."""

import io
import json
import logging

from nova_migration_guard.cmd import app
from nova_migration_guard.cmd import errors
from tests.libvirt import base


class CommandsTestCase(base.TestCase):

    def setUp(self):
        super(CommandsTestCase, self).setUp()
        self.config = self.folder / 'nova.conf'
        self.config.write_text(
            '[DEFAULT]\nhost = one\nstate_path = %s\n'
            '[migration_guard]\nenabled = true\n'
            '[libvirt]\nconnection_uri = %s\n' % (
                self.folder, self.host.uri))
        root = logging.getLogger()
        self.addCleanup(setattr, root, 'handlers', root.handlers[:])

    def run_command(self, *arguments):
        """Run a command; its status and its output."""
        stdout, stderr = io.StringIO(), io.StringIO()
        status = app.main(['--config-file', str(self.config)] +
                          list(arguments), stdout=stdout, stderr=stderr)
        return status, stdout.getvalue() or stderr.getvalue()

    def show(self, *arguments):
        status, said = self.run_command(*arguments + ('-f', 'json'))
        self.assertEqual(errors.OK, status, said)
        return json.loads(said)

    def test_jobs(self):
        self.assertEqual([], self.show('job', 'list'))
        started = self.start_guest()
        self.assertEqual([], self.show('job', 'list'))
        self.leave_job(started, 'copy', target=str(self.folder / 'copy'))
        row, = self.show('job', 'list')
        self.assertEqual(
            (started.uuid, 'block copy', 'vda', 'foreign'),
            (row['Instance'], row['Kind'], row['Disk'], row['Owner']))
        self.assertRegex(row['Progress'], '^[0-9]+%$')
        shown = self.show('explain', started.uuid)
        self.assertEqual(('LEAVE', 'the guest is here', 'no job'),
                         (shown['verdict'], shown['guest'], shown['job']))
        self.host.kill()
        status, said = self.run_command('job', 'list')
        self.assertEqual(errors.LIBVIRT_AWAY, status, said)
