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

"""tools/nova_venv.py: the table, interpreters, and when to make anew."""

import importlib.util
import os
import pathlib
import shutil
import stat
import sys

import fixtures
from oslotest import base
import testtools

TOP = pathlib.Path(__file__).resolve().parent.parent.parent

TABLE = """
[DEFAULT]
functional =
tests_require = stestr

[20.1.1]
pythons = 3.8
cutoff = 2020-06-01

[34.0.0]
pythons = 3.11 3.12
cutoff = 2026-11-15
"""


def load():
    spec = importlib.util.spec_from_file_location(
        'nova_venv', str(TOP / 'tools' / 'nova_venv.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class NovaVenvTestCase(base.BaseTestCase):

    def setUp(self):
        super(NovaVenvTestCase, self).setUp()
        self.nova_venv = load()
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.nova_venv.TOP = self.top
        self.nova_venv.CONSTRAINTS = self.top
        self.nova_venv.say = lambda text: None
        for name in ('setup.cfg', 'requirements.txt', 'nova-20.1.1.txt',
                     'nova-34.0.0.txt'):
            self.top.joinpath(name).write_text('')
        self.top.joinpath('releases.cfg').write_text(TABLE)

    def only_these_pythons(self, **versions):
        """Let the search find nothing but some programs.

        :param versions: {name: the version that it says it is}
        """
        folder = self.useFixture(fixtures.TempDir()).path
        for name, version in versions.items():
            program = os.path.join(folder, name)
            with open(program, 'w') as f:
                f.write('#!/bin/sh\necho %s\n' % version)
            os.chmod(program, stat.S_IRWXU)
        # /usr/bin is looked into as well, whatever PATH says
        which = self.nova_venv.shutil.which
        self.useFixture(fixtures.MockPatchObject(
            self.nova_venv.shutil, 'which',
            lambda name, path=None: None if path else which(name, path=folder)
        ))
        self.useFixture(fixtures.MockPatchObject(sys, 'executable', ''))
        self.useFixture(fixtures.EnvironmentVariable('PYENV_ROOT', folder))

        def uv(*arguments, **env):
            raise self.nova_venv.Failure('no network')
        self.nova_venv.uv = uv
        return folder


class TableTestCase(NovaVenvTestCase):

    def test_newest_release_for(self):
        newest = self.nova_venv.newest_release_for
        self.assertEqual('34.0.0', newest('3.11'))
        self.assertEqual('34.0.0', newest((3, 12, 1)))
        self.assertEqual('20.1.1', newest((3, 8)))
        self.assertIsNone(newest('3.7'))

    def test_unknown_release(self):
        with testtools.ExpectedException(
                self.nova_venv.Failure, '.*35.0.0.*20.1.1, 34.0.0'):
            self.nova_venv.make('35.0.0', self.top / 'venv')


class FindPythonTestCase(NovaVenvTestCase):

    def test_by_its_name(self):
        folder = self.only_these_pythons(**{'python3.8': '3.8'})
        self.assertEqual(os.path.join(folder, 'python3.8'),
                         self.nova_venv.find_python('3.8'))

    def test_by_what_it_says(self):
        # a pyenv shim of the right name that runs nothing, and a python3
        folder = self.only_these_pythons(
            **{'python3.8': '', 'python3': '3.8'})
        self.assertEqual(os.path.join(folder, 'python3'),
                         self.nova_venv.find_python('3.8'))

    def test_first_version_that_is_there(self):
        folder = self.only_these_pythons(**{'python3.7': '3.7'})
        self.assertEqual(os.path.join(folder, 'python3.7'),
                         self.nova_venv.find_python('3.8', '3.7'))

    def test_missing(self):
        self.only_these_pythons(python3='3.13')
        with testtools.ExpectedException(
                self.nova_venv.Failure,
                r'(?s)Python 3\.8 is missing: .*no network'):
            self.nova_venv.find_python('3.8')


class MakeTestCase(NovaVenvTestCase):

    def setUp(self):
        super(MakeTestCase, self).setUp()
        self.folder = self.top / 'venv'
        self.made = 0
        self.nova_venv.libvirt_requirement = lambda: None
        self.nova_venv._version_of = lambda python: '3.8'
        self.nova_venv.run = lambda command: str(self.folder / 'lib')
        self.nova_venv.install_project = lambda python, constraints: None

        def uv(*arguments, **env):
            if arguments[0] == 'venv':
                self.made += 1
                shutil.rmtree(str(self.folder), ignore_errors=True)
                self.folder.joinpath('lib').mkdir(parents=True)
                self.folder.joinpath('pyvenv.cfg').write_text('')
        self.nova_venv.uv = uv

    def make(self):
        return self.nova_venv.make('20.1.1', str(self.folder),
                                   python='/bin/python')

    def test_result(self):
        self.assertEqual(self.folder / 'bin' / 'python', self.make())
        self.assertEqual(
            str(self.folder / 'etc' / 'nova'),
            os.readlink(str(self.folder / 'lib' / 'etc' / 'nova')))

    def test_second_time(self):
        self.make()
        self.make()
        self.assertEqual(1, self.made)

    def test_other_pins(self):
        self.make()
        self.top.joinpath('nova-20.1.1.txt').write_text('wrapt==1.12.1\n')
        self.make()
        self.assertEqual(2, self.made)

    def test_libvirt_without_its_headers(self):
        with testtools.ExpectedException(self.nova_venv.Failure,
                                         '.*no headers of libvirt'):
            self.nova_venv.make_without_nova(self.folder, '/bin/python',
                                             libvirt=True)
        self.assertEqual(0, self.made)

    def test_folder_of_something_else(self):
        self.folder.mkdir()
        self.folder.joinpath('thesis.tex').write_text('')
        with testtools.ExpectedException(self.nova_venv.Failure,
                                         '.*no virtualenv.*'):
            self.make()
        self.assertEqual(0, self.made)
