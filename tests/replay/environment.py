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

"""Finds or makes the virtualenv with a Nova in which scenarios run.

It comes from the standard library and ``tools/nova_venv.py`` alone: this is
what runs before there is a virtualenv.
"""

import collections
import contextlib
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import time

from tests.replay import process

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
#: Seconds within which a virtualenv is made, downloads included.
MAKE_LIMIT = 1800
#: Seconds within which an interpreter says what it is.
ASK_LIMIT = 60
# Seconds between two looks at a lock.
_LOOK = 0.3

#: python: path of the interpreter; release: of the Nova that it has; lab:
#: whether that Nova runs on the lab, and not in the interpreter.
Environment = collections.namedtuple(
    'Environment', ['python', 'release', 'lab'], defaults=[False])

#: What to make. python: path of an interpreter, or None where
#: tools/nova_venv.py is to find one; folder: name in .venvs.
Choice = collections.namedtuple('Choice', ['release', 'python', 'folder'])

_ASK = """
import importlib, os, sys
for name in ('nova', 'testtools', 'placement'):
    try:
        importlib.import_module(name)
    except ImportError as exc:
        sys.exit('%s (%s)' % (name, exc))
import nova
site = os.path.dirname(os.path.dirname(nova.__file__))
if not os.path.exists(os.path.join(site, 'etc', 'nova', 'api-paste.ini')):
    sys.exit('etc/nova/api-paste.ini beside the package nova, in %s' % site)
try:
    from importlib import metadata
    print(metadata.version('nova'))
except ImportError:
    import pkg_resources
    print(pkg_resources.get_distribution('nova').version)
"""


class Failure(Exception):
    """Something that the user has to mend; its text says what and how."""


def venv_tools():
    """Return the module tools/nova_venv.py."""
    path = os.path.join(TOP, 'tools', 'nova_venv.py')
    spec = importlib.util.spec_from_file_location('nova_venv', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ask(python, code):
    """Return (exit code, stdout, stderr) of a line of Python elsewhere."""
    try:
        done = subprocess.run(
            [python, '-W', 'ignore', '-c', code], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True, timeout=ASK_LIMIT)
    except (OSError, subprocess.SubprocessError) as exc:
        return 1, '', str(exc)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def existing(folder, release=None):
    """Return the Environment of a virtualenv that the user has.

    :param release: the release that was asked for, or None for any
    :raises Failure: it is no virtualenv, or has no Nova, or another one
    """
    python = os.path.join(os.path.abspath(folder), 'bin', 'python')
    if not os.access(python, os.X_OK):
        raise Failure('--venv %s: no virtualenv, %s is no program'
                      % (folder, python))
    code, out, err = _ask(python, _ASK)
    if code:
        lacks = err.splitlines()[-1] if err else 'an answer'
        raise Failure('--venv %s lacks %s; tools/make-venv RELEASE FOLDER '
                      'makes one that has all' % (folder, lacks))
    if release and release != out:
        raise Failure('--venv %s has nova %s, not the %s of --release'
                      % (folder, out, release))
    return Environment(python, out)


def _interpreter(python):
    """Return (path, '3.11') of the interpreter that --python names.

    :raises Failure: it is not there, or is no Python
    """
    path = shutil.which(python)
    if path is None:
        raise Failure('--python %s: there is no such program' % python)
    code, out, err = _ask(
        path, 'import sys; print("%d.%d" % sys.version_info[:2])')
    if code:
        raise Failure('--python %s is no Python that runs: %s'
                      % (python, err.splitlines()[-1] if err else
                         'it ended with %d' % code))
    return os.path.abspath(path), out


def choose(release=None, python=None):
    """Return the Choice of a virtualenv to make.

    Without a release it is the newest of the table, or else the newest that
    a Python of this machine runs.

    :raises Failure: the release is not known, or the Python does not run it
    """
    tools = venv_tools()
    table = tools.releases()
    known = table.sections()
    if release and release not in known:
        raise Failure('--release %s is not known; known are %s'
                      % (release, ', '.join(known)))
    if python:
        return _choose_for(python, release, tools)
    if release:
        return Choice(release, None, 'replay-' + release)
    for newest in reversed(known):
        try:
            return Choice(newest, tools.find_python(
                *table[newest]['pythons'].split(), install=False),
                'replay-' + newest)
        except tools.Failure:
            continue
    # none here: nova_venv asks uv for a Python
    return Choice(known[-1], None, 'replay-' + known[-1])


def _choose_for(python, release, tools):
    """The same for a Python that the user named."""
    path, version = _interpreter(python)
    if release is None:
        release = tools.newest_release_for(version)
        if release is None:
            raise Failure('no release of the table runs on Python %s '
                          '(--python %s)' % (version, python))
    fitting = tools.releases()[release]['pythons'].split()
    if version not in fitting:
        raise Failure('nova %s does not run on Python %s (--python %s) but '
                      'on %s' % (release, version, python,
                                 ', '.join(fitting)))
    # beside the one with the Python that is taken by itself
    return Choice(release, path, 'replay-%s-python%s' % (release, version))


def _check_maker():
    """Complain of what the machine lacks to make a virtualenv.

    :raises Failure: it names the package
    """
    if shutil.which('uv') or os.path.exists(
            os.path.join(TOP, '.cache', 'uv', 'bin', 'uv')):
        return
    for module in ('venv', 'ensurepip'):
        if importlib.util.find_spec(module) is None:
            version = '%d.%d' % sys.version_info[:2]
            raise Failure(
                'this Python (%s) has no module %s, so no virtualenv can be '
                'made.\nDebian, Ubuntu: apt-get install python3-venv (or '
                'python%s-venv)\nFedora, RHEL: dnf install python3-pip\n'
                'or put uv on PATH, or name a virtualenv that has Nova with '
                '--venv' % (sys.executable, module, version))


@contextlib.contextmanager
def _lock(folder, progress, limit):
    """Keep two replays from making the same virtualenv at once.

    The kernel drops the lock of a process that dies.
    """
    end = time.monotonic() + limit
    with open(folder + '.lock', 'w') as stream:
        waits = False
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise Failure('another replay has been making %s for '
                                  '%d s' % (folder, limit))
            if not waits:
                waits = True
                progress.begin('waiting for another replay, which makes %s'
                               % os.path.relpath(folder, TOP))
            progress.tick()
            time.sleep(_LOOK)
        if waits:
            progress.end('done')
        yield


def own(choice, progress, log, limit=MAKE_LIMIT):
    """Return the Environment in the checkout's .venvs; make it if need be.

    :param choice: a Choice
    :param progress: Progress that tells of it
    :param log: path of a file for the details
    :raises Failure: it cannot be made
    """
    _check_maker()
    folder = os.path.join(TOP, '.venvs', choice.folder)
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with _lock(folder, progress, limit):
            return _make(choice, folder, progress, log, limit)
    except OSError as exc:
        raise Failure('cannot make a virtualenv in %s: %s; name one that has '
                      'Nova with --venv' % (folder, exc))


def _make(choice, folder, progress, log, limit):
    # Nova's fixtures bring a libvirt of their own; to compile the real
    # bindings takes a minute, a compiler and libvirt's headers.
    argv = [sys.executable, os.path.join(TOP, 'tools', 'make-venv'),
            choice.release, folder, '--no-libvirt-python']
    if choice.python:
        argv += ['--python', choice.python]
    told = []

    def tick():
        # what make-venv says it is doing, without its name before it
        lines = [line.split(': ', 1)[1]
                 for line in process.last_lines(log, 5)
                 if line.startswith('make-venv: ')]
        if lines and lines[-1] not in told:
            told.append(lines[-1])
            progress.change(lines[-1])
        progress.tick()

    progress.begin('preparing nova %s' % choice.release)
    try:
        code = process.run(argv, log, limit, tick, cwd=TOP)
    except process.TimedOut as exc:
        raise Failure('making the virtualenv %s %s' % (folder, exc))
    if code:
        raise Failure('making the virtualenv %s failed' % folder)
    progress.end('ready in %s' % os.path.relpath(folder, TOP))
    return Environment(os.path.join(folder, 'bin', 'python'),
                       choice.release)
