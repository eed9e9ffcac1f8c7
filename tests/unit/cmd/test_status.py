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

import contextlib
import io
import json

import fixtures

from nova_migration_guard.cmd import ping
from nova_migration_guard.cmd import status
from nova_migration_guard import compat
from nova_migration_guard import seams
from tests.unit.cmd import base
from tests.unit import test_libvirt_jobs

SUCCESS, WARNING, FAILURE = 0, 1, 2


class StatusTestCase(base.CommandTestCase):

    def setUp(self):
        super(StatusTestCase, self).setUp()
        self.libvirt.getVersion = lambda: 7002022
        self.silent = {}
        self.asked = []
        self.useFixture(fixtures.MockPatchObject(
            seams, 'check', lambda conf: '34.0.0'))
        self.useFixture(fixtures.MockPatchObject(
            ping, 'ping', lambda conf, peer: (
                self.asked.append(peer) or self.silent.get(peer))))
        self.uris = []
        self.libvirt.module.openReadOnly = lambda uri: (
            self.uris.append(uri) or self.libvirt.open(uri))
        # the temporary folder of tests is often one
        self.useFixture(fixtures.MockPatchObject(
            status, '_FORGETFUL', ()))
        self.parent.mkdir()

    def check(self, *arguments):
        """{check: (result, details)}; the status is the worst of them."""
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout):
            code = status.main(
                ['--config-file', str(self.config)] + list(arguments) +
                ['upgrade', 'check', '--json'])
        found = {each['check']: (each['result'], each['details'])
                 for each in json.loads(stdout.getvalue())['checks']}
        self.assertEqual(
            ['Nova', 'Options', 'Journal', 'libvirt', 'Versions', 'Peers'],
            list(found))
        self.assertEqual(max(each[0] for each in found.values()), code)
        return found

    def must_be(self, name, code, said, *arguments):
        found = self.check(*arguments)
        self.assertEqual(code, found[name][0], found)
        self.assertIn(said, found[name][1])

    def test_all_is_well(self):
        found = self.check()
        self.assertEqual({SUCCESS}, {code for code, _ in found.values()},
                         found)
        self.assertIn('libvirt 9.0.0', found['Versions'][1])

    def test_nova_does_not_fit(self):
        def check(conf):
            raise compat.UnsupportedNova('nova 99 does not fit')
        self.useFixture(fixtures.MockPatchObject(seams, 'check', check))
        self.must_be('Nova', FAILURE, 'nova 99')

    def test_not_enabled(self):
        self.config.write_text('[DEFAULT]\nstate_path = %s\n' % self.top)
        self.must_be('Options', WARNING, 'not set in %s' % self.config)

    def test_bad_options(self):
        text = self.config.read_text()
        for line, code, said in (
                ('enabled = perhaps', FAILURE, 'enabled'),
                ('abort_timeout = x', FAILURE, 'abort_timeout'),
                ('abort_timout = 5', WARNING, 'abort_timout in')):
            self.config.write_text(text.replace('enabled = true', line))
            self.must_be('Options', code, said)

    def test_journal(self):
        self.journal.begin(base.entry())
        (self.folder / (base.OTHER + '.json')).write_text('{')
        self.must_be('Journal', WARNING, base.OTHER)

    def test_no_folder_for_the_journal(self):
        text = self.config.read_text()
        self.config.write_text(text + 'journal_dir = /no/such/folder\n')
        self.must_be('Journal', FAILURE, 'cannot be made')

    def test_journal_may_not_be_written(self):
        self.config.chmod(0o644)
        self.as_nobody()
        self.must_be('Journal', FAILURE, str(self.parent))

    def test_journal_in_memory(self):
        self.useFixture(fixtures.MockPatchObject(
            status, '_FORGETFUL', (status._file_system(str(self.parent)),)))
        self.must_be('Journal', WARNING, 'does not outlive')

    def test_libvirt_is_away(self):
        self.libvirt.error = test_libvirt_jobs.Error(38)
        self.must_be('libvirt', FAILURE, 'qemu:///system')

    def test_known_faults(self):
        self.libvirt.getLibVersion = lambda: 8000000
        self.must_be('Versions', WARNING, 'libvirt 8.0.0: a post-copy')
        self.libvirt.getLibVersion = lambda: 8005000
        self.must_be('Versions', SUCCESS, '8.5.0')
        self.libvirt.getVersion = lambda: 2010001
        self.must_be('Versions', WARNING, 'QEMU 2.10.1')

    def test_peers(self):
        self.journal.begin(base.entry())
        self.must_be('Peers', SUCCESS, 'host-b, host-c', '--peer', 'host-c')
        self.assertEqual({'host-b', 'host-c'}, set(self.asked))
        self.silent['host-b'] = 'timed out'
        self.must_be('Peers', WARNING,
                     'host-b over RPC: timed out, libvirt: answers')
        self.assertIn('qemu+tcp://host-b/system', self.uris)
        self.config.write_text(
            self.config.read_text() +
            '[libvirt]\nlive_migration_uri = qemu+tls://%s/system\n')
        self.libvirt.error = test_libvirt_jobs.Error(38)
        self.must_be('Peers', FAILURE, 'libvirt: libvirt error 38')
        self.assertIn('qemu+tls://host-b/system', self.uris)

    def test_table(self):
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout):
            status.main(['--config-file', str(self.config), 'upgrade',
                         'check'])
        self.assertIn('Check: Journal', stdout.getvalue())
