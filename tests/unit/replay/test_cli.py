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
import json
import os
import signal
import subprocess
import sys
from unittest import mock

import ddt
import fixtures
import testtools

from tests.replay import catalog
from tests.replay import cli
from tests.replay import environment
from tests.replay import lab_environment
from tests.replay import runner
from tests.replay import timeline
from tests.unit.replay import samples


class _TestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.out = io.StringIO()
        self.err = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.out))
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', self.err))


@ddt.ddt
class ParseTestCase(_TestCase):

    def _refused(self, *argv):
        exc = self.assertRaises(SystemExit, cli.parse, list(argv))
        self.assertEqual(2, exc.code)
        self.assertEqual('', self.out.getvalue())
        return self.err.getvalue()

    def test_defaults(self):
        options = cli.parse([])
        self.assertEqual(catalog.names(), options.scenario)
        self.assertEqual(['off', 'on'], options.guards)
        self.assertFalse(options.json)

    def test_lab(self):
        options = cli.parse(['--on', 'lab'])
        self.assertEqual([name for name in catalog.names()
                          if catalog.SCENARIOS[name].lab], options.scenario)
        self.assertEqual(runner.LAB_LIMIT, options.timeout)
        self.assertEqual(runner.LIMIT, cli.parse([]).timeout)

    def test_scenarios(self):
        names = catalog.names()
        for argv in (['--scenario', names[1] + ',' + names[0]],
                     ['--scenario', names[1], '--scenario', names[0]],
                     ['--scenario', ' %s , %s ' % (names[0], names[1]),
                      '--scenario', names[0]]):
            self.assertEqual(names[:2], cli.parse(argv).scenario)
        self.assertEqual(
            names, cli.parse(['--scenario', names[0] + ',all']).scenario)

    @ddt.data('s1', '', 'restart-mid-migration,nonsense')
    def test_unknown_scenario(self, value):
        text = self._refused('--scenario', value)
        self.assertIn('unknown scenario %r' % value.split(',')[-1], text)
        for name in catalog.names():
            self.assertIn(name, text)

    @ddt.data((['--guard', 'maybe'], 'maybe'),
              (['--release', 'train'], "'train' is no release"),
              (['--timeout', '0'], "'0' is not a number of seconds"),
              (['--timeout', 'long'], "'long' is not a number"),
              (['--venv', 'a', '--python', 'b'], 'leave out --python'),
              (['--on', 'lab', '--venv', 'a'], 'leave out --venv'),
              (['--on', 'lab', '--python', 'b'], 'and --python'),
              (['--on', 'lab', '--scenario', 'evacuation-race'],
               'not on the lab: evacuation-race'),
              (['--on', 'the moon'], 'the moon'),
              (['--nonsense'], '--nonsense'),
              (['--html'], '--html'),
              (['--html', '/no/such/page.html'],
               '--html /no/such/page.html: there is no folder /no/such'),
              (['--html', '/'], '--html /: is a folder'))
    @ddt.unpack
    def test_bad_usage(self, argv, words):
        self.assertIn(words, self._refused(*argv))

    def test_help_names_scenarios_and_exit_codes(self):
        exc = self.assertRaises(SystemExit, cli.parse, ['--help'])
        self.assertEqual(0, exc.code)
        for words in catalog.names() + ['exit code', 'examples']:
            self.assertIn(words, self.out.getvalue())


@ddt.ddt
class MainTestCase(_TestCase):

    records = {
        ('restart-mid-migration', 'off'): samples.restart_stock,
        ('restart-mid-migration', 'on'): samples.restart_guarded,
        ('evacuation-race', 'off'): samples.race_stock,
        ('evacuation-race', 'on'): samples.race_guarded,
    }

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', '100'))
        self.useFixture(fixtures.EnvironmentVariable('TMPDIR', self.folder))
        self.useFixture(fixtures.MonkeyPatch('tempfile.tempdir', None))
        self.useFixture(fixtures.MockPatchObject(
            environment, 'existing',
            lambda *args: environment.Environment('python', '34.0.0')))
        self.useFixture(fixtures.MockPatchObject(runner, 'play', self._play))
        for number in cli._SIGNALS:
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.verdicts = {}
        self.broken = ()
        self.played = []

    def _play(self, scenario, guards, env, folder, tick, limit):
        return [self._play_one(scenario.name, guard, folder)
                for guard in guards]

    def _play_one(self, name, guard, folder):
        self.played.append((name, guard))
        with open(runner.log_path(folder, name, guard), 'w') as stream:
            stream.write('first line\n' + 'noise\n' * 50 + 'last line\n')
        if (name, guard) in self.broken:
            return runner.Broken('it is a test')
        record = self.records[(name, guard)]()
        verdict = self.verdicts.get((name, guard))
        if verdict:
            record.update(verdict=verdict, safe=verdict == 'SAFE')
        return timeline.from_dict(record)

    def _main(self, *argv):
        return cli.main(['--venv', 'v', '--scenario',
                         'restart-mid-migration,evacuation-race'] +
                        list(argv))

    def _logs(self):
        return [name for name in os.listdir(self.folder)
                if name.startswith('nova-migration-guard-replay-')]

    def test_all_is_well(self):
        self.assertEqual(0, self._main())
        self.assertEqual(
            [('restart-mid-migration', 'off'),
             ('restart-mid-migration', 'on'),
             ('evacuation-race', 'off'), ('evacuation-race', 'on')],
            self.played)
        text = self.out.getvalue()
        for words in ('[LOST DISK]', '[VF GIVEN TWICE]', '[SAFE]'):
            self.assertIn(words, text)
        self.assertNotIn('\x1b', text)
        self.assertEqual([], self._logs())

    @ddt.data(1, 2, None)
    def test_one_processor_or_more(self, count):
        self.useFixture(fixtures.MonkeyPatch('os.cpu_count', lambda: count))
        self.assertEqual(0, self._main())
        steps = [line for line in self.err.getvalue().splitlines()
                 if line.endswith('...')]
        self.assertEqual(2 if count == 2 else 4, len(steps))
        self.assertEqual(list(self.records), self.played)

    def test_guarded_run_is_not_safe(self):
        self.verdicts[('evacuation-race', 'on')] = 'VF GIVEN TWICE'
        self.assertEqual(1, self._main())
        # the logs are worth a look
        self.assertEqual(1, len(self._logs()))

    def test_stock_alone(self):
        self.assertEqual(0, self._main('--guard', 'off'))
        self.assertEqual({'off'}, {guard for _, guard in self.played})

    def test_stock_that_is_safe_is_no_failure(self):
        self.verdicts[('evacuation-race', 'off')] = 'SAFE'
        self.assertEqual(0, self._main())

    def test_run_that_broke(self):
        self.broken = [('restart-mid-migration', 'off')]
        self.assertEqual(2, self._main())
        self.assertEqual(4, len(self.played))
        text = self.err.getvalue()
        self.assertIn('BROKE: it is a test', text)
        self.assertIn('last line', text)
        self.assertNotIn('first line', text)
        log = text.split('the whole log: ')[1].splitlines()[0]
        self.assertTrue(os.path.exists(log), log)
        self.assertIn('[SAFE]', self.out.getvalue())

    def test_unsafe_counts_for_more_than_broken(self):
        self.broken = [('restart-mid-migration', 'off')]
        self.verdicts[('evacuation-race', 'on')] = 'VF GIVEN TWICE'
        self.assertEqual(1, self._main())

    def test_json_is_all_there_is_on_stdout(self):
        self.assertEqual(0, self._main('--json'))
        runs = json.loads(self.out.getvalue())
        self.assertEqual(4, len(runs))
        self.assertEqual(
            ['scenario', 'guard', 'release', 'verdict', 'safe', 'events'],
            list(runs[0]))
        self.assertEqual(samples.restart_stock(), runs[0])

    def test_json_of_nothing_is_a_list(self):
        self.broken = list(self.records)
        self.assertEqual(2, self._main('--json'))
        self.assertEqual([], json.loads(self.out.getvalue()))

    def test_html(self):
        path = os.path.join(self.folder, 'page.html')
        self.assertEqual(0, self._main('--html', path, '--json'))
        with open(path, encoding='utf-8') as stream:
            self.assertIn('LOST DISK', stream.read())
        self.assertIn('wrote ' + path, self.err.getvalue())

    def test_html_is_refused_before_the_runs(self):
        self.assertRaises(SystemExit, self._main, '--html', '/no/such/page')
        self.assertEqual([], self.played)

    def test_html_of_nothing(self):
        self.broken = list(self.records)
        path = os.path.join(self.folder, 'page.html')
        self.assertEqual(2, self._main('--html', path))
        self.assertFalse(os.path.exists(path))
        self.assertIn('no page', self.err.getvalue())

    def test_verbose_shows_and_keeps_logs(self):
        self.assertEqual(0, self._main('--verbose'))
        self.assertIn('first line', self.err.getvalue())
        self.assertEqual(1, len(self._logs()))

    def test_virtualenv_that_cannot_be_had(self):
        def fail(*args):
            raise environment.Failure('no such luck')

        self.useFixture(fixtures.MockPatchObject(environment, 'existing',
                                                 fail))
        self.assertEqual(2, self._main())
        self.assertIn('tools/replay: no such luck', self.err.getvalue())
        self.assertEqual([], self.played)
        self.assertEqual('', self.out.getvalue())
        self.assertEqual([], self._logs())

    def test_lab_needs_root(self):
        self.useFixture(fixtures.MockPatch('os.geteuid', lambda: 1000))
        self.assertEqual(cli.BROKEN, cli.main(['--on', 'lab']))
        self.assertIn('the lab needs root', self.err.getvalue())
        self.assertEqual([], self.played)

    def test_lab_plays_one_after_the_other(self):
        lab = mock.Mock()
        lab.up.return_value = environment.Environment(
            'python', '34.0.0', True)
        self.useFixture(fixtures.MockPatchObject(
            lab_environment, 'Lab', mock.Mock(return_value=lab)))
        self.useFixture(fixtures.MockPatch('os.cpu_count', lambda: 8))
        cli.main(['--on', 'lab', '--scenario', 'restart-mid-migration'])
        self.assertEqual(['off', 'on'], [guard for _, guard in self.played])
        self.assertIn('[2/2]', self.err.getvalue())
        lab.down.assert_called_once_with()

    def test_virtualenv_that_cannot_be_made(self):
        def fail(choice, told, log):
            with open(log, 'w') as stream:
                stream.write('no network\n')
            raise environment.Failure('making it failed')

        self.useFixture(fixtures.MockPatchObject(environment, 'own', fail))
        self.assertEqual(2, cli.main([]))
        self.assertIn('    no network\n', self.err.getvalue())
        self.assertIn('the whole log: ', self.err.getvalue())
        self.assertEqual(1, len(self._logs()))

    @ddt.data(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    def test_interrupted(self, number):
        def play(*args):
            os.kill(os.getpid(), number)
            signal.pause()

        signal.signal(number, signal.SIG_DFL)
        self.useFixture(fixtures.MockPatchObject(runner, 'play', play))
        self.assertEqual(128 + number, self._main())
        self.assertIn('interrupted', self.err.getvalue())
        self.assertEqual([], self._logs())

    def test_what_is_ignored_stays_ignored(self):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.assertEqual(0, self._main())
        self.assertEqual(signal.SIG_IGN, signal.getsignal(signal.SIGHUP))


@testtools.skipIf(sys.version_info < (3, 8), 'tools/replay refuses it')
class ProgramTestCase(testtools.TestCase):

    def _program(self, *argv, **kwargs):
        return subprocess.run(
            [sys.executable,
             os.path.join(environment.TOP, 'tools', 'replay')] + list(argv),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True, timeout=60, **kwargs)

    def test_runs_from_anywhere_without_packages(self):
        # -I and -S: no site-packages, and nothing of the current folder
        done = subprocess.run(
            [sys.executable, '-I', '-S',
             os.path.join(environment.TOP, 'tools', 'replay'), '--help'],
            stdout=subprocess.PIPE, cwd='/', timeout=60,
            universal_newlines=True)
        self.assertEqual(0, done.returncode)
        self.assertIn('restart-mid-migration', done.stdout)

    def test_bad_usage(self):
        done = self._program('--scenario', 'nonsense')
        self.assertEqual(2, done.returncode)
        self.assertEqual('', done.stdout)
        self.assertIn("unknown scenario 'nonsense'", done.stderr)

    def test_no_virtualenv(self):
        done = self._program('--venv', '/nowhere', '--json')
        self.assertEqual(2, done.returncode)
        self.assertEqual('', done.stdout)
        self.assertIn('tools/replay: --venv /nowhere: no virtualenv',
                      done.stderr)
        self.assertNotIn('Traceback', done.stderr)


@testtools.skipIf(sys.version_info >= (3, 8), 'tools/replay runs on it')
class OldPythonTestCase(testtools.TestCase):

    def test_is_refused(self):
        done = subprocess.run(
            [sys.executable, os.path.join(environment.TOP, 'tools',
                                          'replay')],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True, timeout=60)
        self.assertEqual(2, done.returncode)
        self.assertIn('needs Python 3.8 or later; this is 3.7', done.stderr)
