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


"""The devstack plugin, with a stand-in for devstack's own functions."""

import configparser
import os
import pathlib
import subprocess

import fixtures
from oslotest import base

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = HERE.parent.parent.parent / 'devstack'
STAND_IN = HERE / 'devstack.sh'
#: What nova.conf has before the plugin, and after it.
NOVA_CONF = '[DEFAULT]\nhost = a\n\n[workarounds]\nx = y\n'


class PluginTestCase(base.BaseTestCase):

    def setUp(self):
        super(PluginTestCase, self).setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.etc = self.folder / 'etc'
        self.dest = self.folder / 'dest'
        self.checkout = self.dest / 'nova-migration-guard'
        self.egg_info = self.checkout / 'nova_migration_guard.egg-info'
        self.journal = self.folder / 'data' / 'nova' / 'migration-guard'
        for folder in (self.etc, self.egg_info, self.journal):
            folder.mkdir(parents=True)
        (self.etc / 'nova.conf').write_text(NOVA_CONF)

    def run_devstack(self, mode, **variables):
        """Run a script of devstack with the plugin.

        :returns: the calls that the plugin made: list of texts
        """
        calls = self.folder / 'calls'
        calls.write_text('')
        environ = dict({
            'PATH': os.environ['PATH'], 'CALLS': str(calls),
            'ETC': str(self.etc), 'DEST': str(self.dest),
            'DATA': str(self.folder / 'data'), 'GLOBAL_VENV': 'True',
            'DEVSTACK_VENV': '/opt/stack/data/venv',
            'ENABLED_SERVICES': 'n-api,n-cpu'}, **variables)
        done = subprocess.run(
            ['bash', str(STAND_IN), mode, str(PLUGIN)], env=environ,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            universal_newlines=True)
        self.assertEqual(0, done.returncode, done.stdout)
        return calls.read_text().splitlines()

    def options(self, name='nova-cpu.conf'):
        """{option: value} of [migration_guard] in a file, or None."""
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(str(self.etc / name))
        if not parser.has_section('migration_guard'):
            return None
        return {option: parser.get('migration_guard', option)
                for option in parser.options('migration_guard')
                if option not in parser.defaults()}

    def test_stack(self):
        calls = self.run_devstack('stack')
        self.assertEqual([
            'define_plugin nova-migration-guard',
            'setup_develop %s into /opt/stack/data/venv' % self.checkout,
            'iniset nova.conf migration_guard enabled True',
            'iniset nova.conf migration_guard unsupported_nova refuse',
            # devstack's own, after all of it and once
            'run_process n-cpu nova-compute'], calls)
        self.assertEqual({'enabled': 'True', 'unsupported_nova': 'refuse'},
                         self.options())

    def test_stack_without_a_global_virtualenv(self):
        calls = self.run_devstack('stack', GLOBAL_VENV='False')
        self.assertIn('setup_develop %s into system' % self.checkout, calls)

    def test_stack_with_options(self):
        self.run_devstack(
            'stack', MIGRATION_GUARD_ENABLED='False',
            MIGRATION_GUARD_UNSUPPORTED_NOVA='warn',
            MIGRATION_GUARD_OPTIONS='mode=report metrics_file=/a=b.prom')
        self.assertEqual({'enabled': 'False', 'unsupported_nova': 'warn',
                          'mode': 'report', 'metrics_file': '/a=b.prom'},
                         self.options())

    def test_stack_on_a_node_without_nova_compute(self):
        calls = self.run_devstack('stack', ENABLED_SERVICES='n-api')
        self.assertEqual(['define_plugin nova-migration-guard'], calls)
        self.assertEqual(NOVA_CONF, (self.etc / 'nova.conf').read_text())

    def test_unstack(self):
        self.run_devstack('stack')
        calls = self.run_devstack('unstack')
        self.assertEqual([
            'define_plugin nova-migration-guard',
            'pip_uninstall nova-migration-guard from /opt/stack/data/venv'],
            calls)
        for name in ('nova.conf', 'nova-cpu.conf'):
            self.assertEqual(NOVA_CONF.split(), (
                self.etc / name).read_text().split())
        self.assertFalse(self.egg_info.exists())
        self.assertTrue(self.checkout.exists())
        # instances may be there still, until they are cleaned, too
        self.assertTrue(self.journal.exists())

    def test_unstack_between_other_sections(self):
        """What follows the section stays."""
        self.run_devstack('stack')
        path = self.etc / 'nova-cpu.conf'
        path.write_text(path.read_text() + '[zz]\na = b\n')
        self.run_devstack('unstack')
        self.assertEqual((NOVA_CONF + '[zz]\na = b').split(),
                         path.read_text().split())

    def test_unstack_without_a_global_virtualenv(self):
        calls = self.run_devstack('unstack', GLOBAL_VENV='False')
        self.assertIn('pip_uninstall nova-migration-guard from system', calls)

    def test_unstack_when_the_service_is_no_longer_enabled(self):
        self.run_devstack('stack')
        self.run_devstack('unstack', ENABLED_SERVICES='n-api')
        self.assertIsNone(self.options())

    def test_clean(self):
        self.run_devstack('stack')
        self.run_devstack('clean')
        self.assertIsNone(self.options('nova.conf'))
        self.assertFalse(self.journal.exists())
        self.assertTrue(self.journal.parent.exists())

    def test_clean_with_nothing_there(self):
        for name in ('nova.conf',):
            (self.etc / name).unlink()
        self.run_devstack('clean')
