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

import configparser
import fcntl
import io
import os
import stat
import sys
from unittest import mock

import fixtures
import testtools

from tests.replay import environment
from tests.replay import process
from tests.replay import progress


class _Tools(object):
    """Stands in for tools/nova_venv.py."""

    class Failure(Exception):
        pass

    def __init__(self, here):
        self.here = here

    def releases(self):
        table = configparser.ConfigParser()
        table.read_string('[20.1.1]\npythons = 3.8 3.7\n'
                          '[33.0.2]\npythons = 3.10 3.11\n'
                          '[34.0.0]\npythons = 3.11 3.12\n')
        return table

    def newest_release_for(self, version):
        fitting = [name for name, entry in self.releases().items()
                   if version in entry.get('pythons', '').split()]
        return fitting[-1] if fitting else None

    def find_python(self, *versions, **options):
        for version in versions:
            if version in self.here:
                return '/usr/bin/python' + version
        raise self.Failure('none')


class _TestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.tools = _Tools(['3.11'])
        self.useFixture(fixtures.MockPatchObject(
            environment, 'venv_tools', lambda: self.tools))

    def _program(self, name, script):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as stream:
            stream.write('#!/bin/sh\n' + script)
        os.chmod(path, stat.S_IRWXU)
        return path

    def _refused(self, function, *args, **kwargs):
        return str(self.assertRaises(environment.Failure, function, *args,
                                     **kwargs))


class ChooseTestCase(_TestCase):

    def _python(self, version):
        return self._program('python' + version, 'echo ' + version)

    def test_newest_that_a_python_here_runs(self):
        self.assertEqual(('34.0.0', '/usr/bin/python3.11',
                          'replay-34.0.0'), environment.choose())
        self.tools.here = ['3.10', '3.8']
        self.assertEqual(('33.0.2', '/usr/bin/python3.10',
                          'replay-33.0.2'), environment.choose())

    def test_no_python_that_runs_any(self):
        self.tools.here = []
        self.assertEqual(('34.0.0', None, 'replay-34.0.0'),
                         environment.choose())

    def test_release(self):
        self.assertEqual(('20.1.1', None, 'replay-20.1.1'),
                         environment.choose('20.1.1'))

    def test_unknown_release(self):
        text = self._refused(environment.choose, '19.0.0')
        self.assertIn('--release 19.0.0', text)
        self.assertIn('20.1.1, 33.0.2, 34.0.0', text)

    def test_python(self):
        path = self._python('3.10')
        self.assertEqual(('33.0.2', path, 'replay-33.0.2-python3.10'),
                         environment.choose(None, path))

    def test_python_and_release(self):
        path = self._python('3.8')
        self.assertEqual(('20.1.1', path, 'replay-20.1.1-python3.8'),
                         environment.choose('20.1.1', path))
        text = self._refused(environment.choose, '34.0.0', path)
        self.assertIn('nova 34.0.0 does not run on Python 3.8', text)
        self.assertIn('3.11, 3.12', text)

    def test_python_that_runs_nothing(self):
        path = self._python('3.6')
        self.assertIn('no release', self._refused(environment.choose, None,
                                                  path))

    def test_python_that_is_not_there(self):
        text = self._refused(environment.choose, None, '/no/python')
        self.assertIn('/no/python', text)

    def test_python_that_is_none(self):
        path = self._program('cat', 'echo I am a cat >&2; exit 9')
        text = self._refused(environment.choose, None, path)
        self.assertIn('is no Python', text)
        self.assertIn('I am a cat', text)


class ExistingTestCase(_TestCase):

    def _venv(self, script):
        self._program('venv/bin/python', script)
        return os.path.join(self.folder, 'venv')

    def test_good(self):
        folder = self._venv('echo 34.0.0')
        env = environment.existing(folder, '34.0.0')
        self.assertEqual((folder + '/bin/python', '34.0.0', False), env)

    def test_other_release(self):
        text = self._refused(environment.existing,
                             self._venv('echo 33.0.2'), '34.0.0')
        self.assertIn('has nova 33.0.2, not the 34.0.0', text)

    def test_no_virtualenv(self):
        text = self._refused(environment.existing, '/nowhere')
        self.assertIn('--venv /nowhere: no virtualenv', text)

    def test_without_nova(self):
        folder = self._venv('exec %s "$@"' % sys.executable)
        with mock.patch.object(environment, '_ASK',
                               'import sys; sys.exit("nova (why)")'):
            text = self._refused(environment.existing, folder)
        self.assertIn('lacks nova (why)', text)

    def test_silent(self):
        self.assertIn('lacks an answer', self._refused(
            environment.existing, self._venv('exit 1')))


class OwnTestCase(_TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(environment, 'TOP',
                                                 self.folder))
        self.useFixture(fixtures.MockPatchObject(
            environment.shutil, 'which', lambda name: '/usr/bin/' + name))
        self.told = io.StringIO()
        self.log = os.path.join(self.folder, 'log')

    def _own(self, run, python=None, limit=5):
        self.useFixture(fixtures.MockPatchObject(process, 'run', run))
        choice = environment.Choice('34.0.0', python, 'replay-34.0.0')
        return environment.own(choice, progress.Progress(self.told, {}),
                               self.log, limit)

    def test_made(self):
        called = []

        def run(argv, log, limit, tick, cwd):
            called.append(argv)
            with open(log, 'w') as stream:
                stream.write('noise\nmake-venv: nova 34.0.0: installing\n')
            tick()
            return 0

        env = self._own(run, python='/usr/bin/python3.11')
        folder = self.folder + '/.venvs/replay-34.0.0'
        self.assertEqual((folder + '/bin/python', '34.0.0', False), env)
        self.assertEqual(
            [sys.executable, self.folder + '/tools/make-venv', '34.0.0',
             folder, '--no-libvirt-python', '--python',
             '/usr/bin/python3.11'], called[0])
        self.assertIn('nova 34.0.0: installing ...', self.told.getvalue())

    def test_failed(self):
        text = self._refused(self._own, lambda *args, **kwargs: 1)
        self.assertIn('.venvs/replay-34.0.0 failed', text)

    def test_too_long(self):
        def run(*args, **kwargs):
            raise process.TimedOut('ran longer than 5 s')

        self.assertIn('ran longer than 5 s', self._refused(self._own, run))

    def test_folder_that_cannot_be_written(self):
        with open(self.folder + '/.venvs', 'w'):
            pass
        text = self._refused(self._own, None)
        self.assertIn('cannot make a virtualenv', text)
        self.assertIn('--venv', text)

    def test_module_venv_is_missing(self):
        self.useFixture(fixtures.MockPatchObject(
            environment.shutil, 'which', lambda name: None))
        self.useFixture(fixtures.MockPatchObject(
            environment.importlib.util, 'find_spec',
            lambda name: None if name == 'ensurepip' else name))
        text = self._refused(self._own, None)
        self.assertIn('no module ensurepip', text)
        self.assertIn('apt-get install python3-venv', text)
        self.assertIn('dnf install', text)

    def test_another_replay_makes_it(self):
        os.makedirs(self.folder + '/.venvs')
        path = self.folder + '/.venvs/replay-34.0.0.lock'
        with open(path, 'w') as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            text = self._refused(self._own, None, limit=0.5)
        self.assertIn('another replay', text)
        self.assertIn('waiting for another replay', self.told.getvalue())
