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

"""Numbers for Prometheus."""

import os
import pathlib
import re
import stat

import fixtures
from oslo_config import cfg
from oslotest import base

from nova_migration_guard import conf
from nova_migration_guard import metrics

CONF = cfg.CONF


class MetricsTestCase(base.BaseTestCase):

    def setUp(self):
        super(MetricsTestCase, self).setUp()
        conf.register_opts(CONF)
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.folder / 'guard.prom'
        self.set_file(str(self.path))
        self.addCleanup(metrics._values.clear)
        metrics._values.clear()

    def set_file(self, path):
        CONF.set_override('metrics_file', path, group='migration_guard')
        self.addCleanup(CONF.clear_override, 'metrics_file',
                        group='migration_guard')

    def lines(self):
        return [line for line in self.path.read_text().splitlines()
                if not line.startswith('#')]

    def test_counted(self):
        metrics.start('enforce')
        metrics.count('settled_total', verdict='roll_back')
        metrics.count('settled_total', verdict='roll_back')
        metrics.count('settled_total', verdict='finish')
        metrics.gauge('held', 2)
        metrics.gauge('held', 1)
        metrics.count('devices_kept_total', 3)
        lines = self.lines()
        for line in (
                'nova_migration_guard_settled_total{verdict="roll_back"} 2',
                'nova_migration_guard_settled_total{verdict="finish"} 1',
                'nova_migration_guard_held 1',
                'nova_migration_guard_devices_kept_total 3',
                'nova_migration_guard_abort_timeouts_total 0'):
            self.assertIn(line, lines)

    def test_format(self):
        """What Prometheus's parser of text takes."""
        metrics.start('a "b" \\')
        metrics.count('settled_total', verdict='undo')
        text = self.path.read_text()
        self.assertTrue(text.endswith('\n'))
        sample = re.compile(
            r'[a-z_]+(\{[a-z]+="([^"\\\n]|\\["\\n])*"'
            r'(,[a-z]+="([^"\\\n]|\\["\\n])*")*\})? [0-9.]+$')
        for line in self.lines():
            self.assertRegex(line, sample)
        described = re.findall('# TYPE nova_migration_guard_([a-z_]+)', text)
        self.assertEqual(len(set(described)), len(described))

    def test_readable_for_everyone_and_whole(self):
        metrics.gauge('held', 0)
        self.assertEqual(0o644, stat.S_IMODE(os.stat(str(self.path)).st_mode))
        self.assertEqual(['guard.prom'], os.listdir(str(self.folder)))

    def test_no_file(self):
        self.set_file(None)
        metrics.gauge('held', 0)
        self.assertEqual([], os.listdir(str(self.folder)))

    def test_folder_is_not_there(self):
        self.set_file(str(self.folder / 'no' / 'guard.prom'))
        log = self.useFixture(fixtures.FakeLogger())
        metrics.gauge('held', 0)
        metrics.gauge('held', 1)
        self.assertEqual(1, log.output.count('cannot be written'))
