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

"""The options of the guard."""

import pathlib

import fixtures
from oslo_config import cfg
from oslotest import base

from nova_migration_guard import conf


class OptionsTestCase(base.BaseTestCase):

    def setUp(self):
        super(OptionsTestCase, self).setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.conf = cfg.ConfigOpts()
        conf.register_opts(self.conf)
        self.log = self.useFixture(fixtures.FakeLogger())

    def read(self, text):
        path = self.folder / 'nova.conf'
        path.write_text(text)
        self.conf(['--config-file', str(path)], project='nova')
        conf.warn_of_unknown(self.conf)
        return str(path)

    def test_every_option_is_explained(self):
        """With its unit, where it has one, and a default."""
        for option in conf.OPTS:
            self.assertTrue(option.help.strip(), option.name)
            if isinstance(option, cfg.IntOpt):
                self.assertRegex(option.help, '(?i)second|how many',
                                 option.name)
            if option.name != 'metrics_file':
                self.assertIsNotNone(option.default, option.name)

    def test_unknown(self):
        path = self.read('[migration_guard]\nenabled = true\n'
                         'abort_timout = 5\n[other]\nx = 1\n')
        self.assertIn(
            '[migration_guard] abort_timout in %s is no option of '
            'nova-migration-guard, and has no effect. Is abort_timeout '
            'meant?' % path, self.log.output)
        self.assertEqual(1, self.log.output.count('no option'))

    def test_unknown_in_a_folder(self):
        folder = self.folder / 'nova.conf.d'
        folder.mkdir()
        (folder / 'x.conf').write_text('[migration_guard]\nzzz = 1\n')
        self.conf(['--config-dir', str(folder)], project='nova')
        conf.warn_of_unknown(self.conf)
        self.assertIn('[migration_guard] zzz in', self.log.output)
        self.assertNotIn('meant', self.log.output)

    def test_known(self):
        self.read('[migration_guard]\n' + ''.join(
            '%s = %s\n' % (option.name, option.default)
            for option in conf.OPTS if option.default is not None))
        self.assertNotIn('no option', self.log.output)

    def test_no_files(self):
        self.conf([], project='nova', default_config_files=[])
        conf.warn_of_unknown(self.conf)
        self.assertEqual('', self.log.output)
