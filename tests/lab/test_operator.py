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

"""A new operator's first steps: report mode, enforce, and each command.

``NOVA_LAB_TRANSCRIPT`` names a file to which the commands and what they say
are written, for the administration guide.
"""

import os
import pathlib
import re
import subprocess

from tests.lab import base
from tests.lab import migration
from tests.lab import progress
from tests.lab import settings as lab_settings

REFUSED = 6


class OperatorTestCase(migration.MigrationTestCase):

    guard = True

    def setUp(self):
        super(OperatorTestCase, self).setUp()
        self.transcript = []
        self.known = {self.server}
        self.numbers = self.lab.parts.settings.compute_path / 'guard.prom'

    # ---- the transcript

    def say(self, text):
        self.transcript.append(text.rstrip())
        progress.say(text)

    def write(self):
        path = os.environ.get('NOVA_LAB_TRANSCRIPT')
        if path:
            text = re.sub('patched: .*', 'patched: ...',
                          '\n'.join(self.transcript))
            for server in self.known:
                text = text.replace(server, 'SERVER')
            pathlib.Path(path).write_text(text + '\n')

    def command(self, *argv, **options):
        """Run a command on host-a.

        :param status: its exit status
        :param program: which command
        :returns: what it printed
        """
        program = options.get('program', 'app')
        services = self.lab.parts.services
        python = services._nova / 'bin' / 'python'
        done = subprocess.run(
            self.lab.hosts['host-a'].machine.enter() + [
                str(python), '-m', 'nova_migration_guard.cmd.%s' % program,
                '--config-file', str(services.compute_conf('host-a'))] +
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, universal_newlines=True, timeout=120,
            env=dict(os.environ, PYTHONPATH=str(lab_settings.TOP),
                     CLIFF_MAX_TERM_WIDTH='100'))
        self.say('# nova-migration-guard%s %s' % (
            '-status' if program == 'status' else '', ' '.join(argv)))
        self.say(done.stdout)
        self.assertEqual(options.get('status', 0), done.returncode,
                         done.stdout)
        if done.returncode:
            self.say('# echo $?\n%d' % done.returncode)
        return done.stdout

    def logged(self):
        """What the guard of host-a has logged since it was started."""
        log = self.lab.parts.services.computes['host-a'].log
        lines = [line for line in log.read_text().splitlines()
                 if ' nova_migration_guard.' in line and ' DEBUG ' not in line]
        self.say('# grep nova_migration_guard nova-compute.log\n' +
                 '\n'.join(lines[-6:]))
        return '\n'.join(lines)

    def configure(self, mode):
        options = {section: dict(values)
                   for section, values in base.OPTIONS.items()}
        options.setdefault('migration_guard', {}).update({
            'mode': mode, 'metrics_file': str(self.numbers)})
        self.say('[migration_guard] mode = %s; nova-compute is started' %
                 mode)
        self.lab.configure_computes(True, options)

    # ---- the steps

    def test_first_steps(self):
        self.addCleanup(self.write)
        self.configure('report')
        self._report()
        self._forget(self.server)
        self.configure('enforce')
        self.server = self.boot('host-a')
        self.known.add(self.server)
        self._enforce()

    def _report(self):
        self.command('upgrade', 'check', program='status', status=0)
        self.begin()
        self.assertIn('nova', self.command('job', 'list'))
        self.command('journal', 'list')
        self.command('journal', 'show', self.server)
        self.say('nova-compute is killed, kill -9')
        self.lab.kill_compute('host-a')
        self.assertIn('unowned', self.command('job', 'list'))
        self.assertIn('ABORT', self.command('explain', self.server))
        self.say('nova-compute is started')
        self.lab.start_compute('host-a')
        self.assertIn('abort the migration job', self.logged())
        self.assertEqual('\n', self.command('held', 'list'))

    def _enforce(self):
        self.begin()
        self.say('nova-compute is killed on both hosts, kill -9')
        self.lab.kill_compute('host-a')
        self.lab.kill_compute('host-b')
        self.say('nova-compute is started on host-a')
        self.lab.start_compute('host-a')
        self.assertIn('Held: ', self.logged())
        self.assertIn(self.server, self.command('held', 'list'))
        self.command('held', 'show', self.server)
        self.command('explain', self.server, '-c', 'verdict', '-c', 'reason',
                     '-c', 'guest', '-c', 'job', '-c', 'destination_says')
        self.command('job', 'list')
        self.assertIn('Refused', self.command(
            'held', 'release', self.server, '--keep', 'destination',
            status=REFUSED))
        self.assertIn('not held any more', self.command(
            'held', 'release', self.server, '--keep', 'source', '--yes',
            '--yes'))
        self.logged()
        self.command('held', 'list', '-f', 'csv')
        numbers = self.lab.hosts['host-a'].machine.run(
            'grep', '-v', '#', self.numbers)
        self.say('# grep -v "#" guard.prom\n' + numbers)
        self.assertIn('settled_total{verdict="roll_back"} 1', numbers)
        self.say('nova-compute is started on host-b')
        self.lab.start_compute('host-b')
        self.wait_until_settled()
        self.must_be_as_before_the_migration()
        self.must_migrate_to('host-c')
