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

"""What the files beside the code say about it."""

import configparser
import importlib
import json
import pathlib
import re

from os_vif import plugin as os_vif_plugin
from oslotest import base
import yaml

from nova_migration_guard.cmd import app
from nova_migration_guard.cmd import status
from nova_migration_guard import metrics

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def read_config(name):
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(str(TOP / name))
    return parser


def read_pins(path):
    """{name: [version]} of the lines ``name==version`` of a file."""
    pins = {}
    for name, version in re.findall(r'^([\w.-]+)==([\w.]+)',
                                    path.read_text(), re.MULTILINE):
        pins.setdefault(name, []).append(version)
    return pins


def as_numbers(version):
    return tuple(int(part) for part in version.split('.'))


class EntryPointsTestCase(base.BaseTestCase):

    def resolve(self, group):
        found = {}
        for line in read_config('setup.cfg')['entry_points'][
                group].strip().splitlines():
            name, target = [part.strip() for part in line.split('=')]
            module, attribute = target.split(':')
            found[name] = getattr(importlib.import_module(module), attribute)
        return found

    def test_plugin(self):
        found = self.resolve('os_vif')
        self.assertEqual(['migration_guard'], list(found))
        self.assertTrue(issubclass(found['migration_guard'],
                                   os_vif_plugin.PluginBase))

    def test_options(self):
        (group, options), = self.resolve('oslo.config.opts')[
            'nova_migration_guard']()
        self.assertEqual('migration_guard', str(group))
        self.assertIn('enabled', [option.name for option in options])

    def test_commands(self):
        """The documentation shows those that the command has."""
        found = {name.replace('_', ' '): command for name, command in
                 self.resolve('nova_migration_guard.cli').items()}
        self.assertEqual(app.COMMANDS, found)

    def test_programs(self):
        self.assertEqual(
            {'nova-migration-guard': app.main,
             'nova-migration-guard-status': status.main},
            self.resolve('console_scripts'))


class MonitoringTestCase(base.BaseTestCase):
    """What operators load into Prometheus and Grafana."""

    def must_be_known(self, text):
        named = set(re.findall('nova_migration_guard_([a-z_]+)', text))
        self.assertNotEqual(set(), named)
        self.assertEqual(set(), named - set(metrics.METRICS))

    def test_dashboard(self):
        text = (TOP / 'doc/source/admin/grafana/'
                'nova-migration-guard.json').read_text()
        panels = json.loads(text)['panels']
        self.assertEqual(len(panels), len({each['id'] for each in panels}))
        self.must_be_known(text)
        for name in metrics.METRICS:
            self.assertIn('nova_migration_guard_' + name, text)

    def test_alerts(self):
        text = (TOP / 'doc/source/admin/prometheus/'
                'nova-migration-guard.rules.yaml').read_text()
        self.must_be_known(text)
        group, = yaml.safe_load(text)['groups']
        for rule in group['rules']:
            self.assertEqual({'alert', 'expr', 'labels', 'annotations'},
                             set(rule) - {'for'})


class ConstraintsTestCase(base.BaseTestCase):

    def setUp(self):
        super(ConstraintsTestCase, self).setUp()
        self.releases = read_config('constraints/releases.cfg')

    def pins(self, release):
        return read_pins(TOP / 'constraints' / ('nova-%s.txt' % release))

    def test_every_release_has_its_file(self):
        for release in self.releases.sections():
            self.assertEqual([release], self.pins(release)['nova'])

    def test_files_are_of_the_table(self):
        for release in self.releases.sections():
            text = (TOP / 'constraints' /
                    ('nova-%s.txt' % release)).read_text()
            self.assertIn('as of %s,' % self.releases[release]['cutoff'],
                          text)
            for wanted in self.releases[release]['requires'].split():
                if '==' in wanted:
                    self.assertIn('\n%s\n' % wanted, text)

    def test_libvirt_python_is_left_out(self):
        for release in self.releases.sections():
            self.assertNotIn('libvirt-python', self.pins(release))

    def test_every_release_brings_what_the_package_requires(self):
        required = re.findall(r'^([\w.-]+)>=([\d.]+)',
                              (TOP / 'requirements.txt').read_text(),
                              re.MULTILINE)
        self.assertNotEqual([], required)
        for release in self.releases.sections():
            pins = self.pins(release)
            for name, bound in required:
                for version in pins[name.replace('.', '-')]:
                    self.assertGreaterEqual(
                        as_numbers(version), as_numbers(bound),
                        '%s of nova %s' % (name, release))

    def test_tox_runs_every_functional_release(self):
        text = (TOP / 'tox.ini').read_text()
        for release in self.releases.sections():
            if self.releases[release]['functional']:
                self.assertIn('RELEASE = ' + release, text)


class LintTestCase(base.BaseTestCase):

    def test_hooks_have_the_versions_of_tox(self):
        text = (TOP / '.pre-commit-config.yaml').read_text()
        hooks = dict(re.findall(r'\[([\w-]+)==([\w.]+)\]', text))
        pins = read_pins(TOP / 'constraints' / 'lint.txt')
        self.assertNotEqual({}, hooks)
        for name, version in hooks.items():
            self.assertEqual([version], pins[name], name)
