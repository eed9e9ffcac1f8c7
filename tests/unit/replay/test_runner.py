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

import json
import os
import stat
import textwrap

import ddt
import fixtures
import testtools

from tests.replay import catalog
from tests.replay import environment
from tests.replay import runner
from tests.unit.replay import samples


@ddt.ddt
class PlayTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path

    def _play(self, script, guards=('off',), limit=30, release='34.0.0',
              lab=False, **environ):
        """Play with a shell script in the place of Nova's Python."""
        python = os.path.join(self.folder, 'python')
        with open(python, 'w') as stream:
            stream.write('#!/bin/sh\n' + textwrap.dedent(script))
        os.chmod(python, stat.S_IRWXU)
        results = runner.play(
            catalog.SCENARIOS['restart-mid-migration'], guards,
            environment.Environment(python, release, lab), self.folder,
            lambda: None, limit=limit,
            environ=dict(os.environ, OS_DEBUG='1', NMG_OTHER='1',
                         **environ))
        return results[0] if len(guards) == 1 else results

    def test_lab(self):
        self.useFixture(fixtures.EnvironmentVariable('WORDS', self.folder))
        self._play('echo "$NOVA_LAB_RELEASE $*" > "$WORDS/words"', lab=True)
        with open(os.path.join(self.folder, 'words')) as stream:
            self.assertEqual('34.0.0 -m tests.replay.on_lab '
                             'restart-mid-migration\n', stream.read())

    def _record(self, record):
        path = os.path.join(self.folder, 'sample.json')
        with open(path, 'w') as stream:
            json.dump(record, stream)
        return 'cp %s "$NMG_EVENTS"\n' % path

    def _broken(self, *args, **kwargs):
        result = self._play(*args, **kwargs)
        self.assertIsInstance(result, runner.Broken)
        return str(result)

    def _log(self):
        with open(runner.log_path(self.folder, 'restart-mid-migration',
                                  'off')) as stream:
            return stream.read()

    def test_result(self):
        run = self._play(self._record(samples.restart_stock()))
        self.assertEqual('LOST DISK', run.verdict)

    def test_what_the_test_is_told(self):
        self._play('echo "$@"; env; pwd;' +
                   self._record(samples.restart_stock()))
        log = self._log()
        self.assertIn('-m testtools.run tests.replay.', log)
        self.assertIn('NMG_GUARD=off\n', log)
        self.assertIn('PYTHONPATH=%s\n' % environment.TOP, log)
        self.assertIn('\n%s\n' % environment.TOP, log)
        # what is set for other tests is not meant for this one
        self.assertNotIn('OS_DEBUG', log)
        self.assertNotIn('NMG_OTHER', log)

    @ddt.data(('34.0.0', {}, 'true'), ('33.0.2', {}, 'false'),
              ('20.1.1', {}, 'false'),
              ('34.0.0', {'OS_NOVA_DISABLE_EVENTLET_PATCHING': 'false'},
               'false'))
    @ddt.unpack
    def test_threads_as_the_release_has_them(self, release, environ, wanted):
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_NOVA_DISABLE_EVENTLET_PATCHING'))
        self._play('env', release=release, **environ)
        self.assertIn('OS_NOVA_DISABLE_EVENTLET_PATCHING=%s\n' % wanted,
                      self._log())

    def test_failed_test_with_a_bad_end_is_a_result(self):
        run = self._play(self._record(samples.restart_stock()) + 'exit 1')
        self.assertEqual('LOST DISK', run.verdict)

    def test_failed_test_is_not_safe(self):
        record = dict(samples.restart_stock(), safe=True, verdict='SAFE')
        self.assertIn('ended with 1',
                      self._broken(self._record(record) + 'exit 1'))

    def test_failed_test_without_a_record(self):
        self.assertEqual('the test ended with 3',
                         self._broken('echo why; exit 3'))
        self.assertEqual('why\n', self._log())

    def test_no_record(self):
        self.assertIn('cannot read', self._broken('exit 0'))

    def test_half_a_record(self):
        self.assertIn('not JSON', self._broken('echo "{" > "$NMG_EVENTS"'))

    @ddt.data({'scenario': 'evacuation-race'}, {'guard': 'on'})
    def test_record_of_something_else(self, values):
        record = dict(samples.restart_stock(), **values)
        self.assertIn('asked for', self._broken(self._record(record)))

    def test_time_limit(self):
        self.assertIn('took longer than 1 s',
                      self._broken('sleep 30', limit=1))

    def test_stock_and_guarded_at_once(self):
        script = """
            if [ $NMG_GUARD = on ]; then exit 4; fi
            """ + self._record(samples.restart_stock())
        stock, guarded = self._play(script, guards=('off', 'on'))
        self.assertEqual('LOST DISK', stock.verdict)
        self.assertEqual('the test ended with 4', str(guarded))

    def test_no_such_interpreter(self):
        results = runner.play(
            catalog.SCENARIOS['restart-mid-migration'], ['off', 'on'],
            environment.Environment('/no/python', '34.0.0'), self.folder,
            lambda: None)
        self.assertEqual(2, len(results))
        self.assertIn('cannot run /no/python', str(results[1]))

    def test_record_of_an_earlier_run_does_not_count(self):
        self._play(self._record(samples.restart_stock()))
        self._broken('exit 0')
