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

"""Virtualenvs that hold a Nova of a given release and this project.

The standard library is all that it needs, so the scripts beside it run on a
machine where nothing is installed yet. Packages are installed by uv, the one
on PATH or else one of its own, because it can resolve as of a past day.
"""

import configparser
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
CACHE = TOP / '.cache'
CONSTRAINTS = TOP / 'constraints'
# What was installed into a virtualenv, so that it can be told apart from what
# would be installed now. Written last: without it the virtualenv is made anew.
STAMP = 'nova-venv.stamp'


class Failure(Exception):
    """Something that the user has to mend; its text says what and how."""


def say(text):
    """Print one line of progress."""
    print('%s: %s' % (pathlib.Path(sys.argv[0]).name, text),
          file=sys.stderr, flush=True)


def releases():
    """The table of known releases.

    :returns: a configparser with a section for each release, oldest first
    """
    table = configparser.ConfigParser(interpolation=None)
    table.read(str(CONSTRAINTS / 'releases.cfg'))
    return table


def release_entry(release):
    """The table's entry for one release.

    :raises Failure: when there is none
    """
    table = releases()
    if release not in table.sections():
        raise Failure('nova %s is not in constraints/releases.cfg, which has '
                      '%s' % (release, ', '.join(table.sections())))
    return table[release]


def newest_release_for(python_version):
    """The newest Nova in the table that a version of Python runs.

    :param python_version: '3.11', or a tuple that begins (3, 11)
    :returns: a release, or None when the table has none for this Python
    """
    if not isinstance(python_version, str):
        python_version = '%d.%d' % tuple(python_version[:2])
    fitting = [release for release, entry in releases().items()
               if python_version in entry.get('pythons', '').split()]
    return fitting[-1] if fitting else None


def constraints_file(release):
    """The file that pins what a release needs."""
    return CONSTRAINTS / ('nova-%s.txt' % release)


def run(command, extra_env=None):
    """Run a command that prints only when it fails.

    :param command: a list; paths are welcome
    :param extra_env: environment variables to add
    :returns: what it printed on standard output
    :raises Failure: with its last lines, when it fails
    """
    command = [str(word) for word in command]
    done = subprocess.run(
        command, env=dict(os.environ, **(extra_env or {})), cwd=str(TOP),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        tail = (done.stderr or done.stdout).strip().splitlines()[-20:]
        raise Failure('"%s" failed:\n  %s' % (
            ' '.join(command), '\n  '.join(tail)))
    return done.stdout.strip()


def uv(*arguments, **extra_env):
    """Run uv; bring it first where there is none.

    :param arguments: of the command line
    :param extra_env: environment variables to add
    :returns: what it printed
    """
    program = shutil.which('uv') or str(CACHE / 'uv' / 'bin' / 'uv')
    if not os.path.exists(program):
        say('installing uv into .cache/uv')
        try:
            run([sys.executable, '-m', 'venv', '--clear', CACHE / 'uv'])
        except Failure as e:
            raise Failure('%s\nIs python3-venv installed?' % e)
        run([CACHE / 'uv' / 'bin' / 'python', '-m', 'pip', 'install',
             '--quiet', 'uv>=0.5'])
    env = {'UV_PYTHON_DOWNLOADS': 'never'}
    env.update(extra_env)
    return run([program, '--quiet'] + list(arguments), env)


def _version_of(interpreter):
    """'3.11' for a Python that runs, None for anything else.

    A pyenv shim, for one, is a file that exists and may run nothing.
    """
    try:
        return subprocess.run(
            [interpreter, '-c',
             'import sys; print("%d.%d" % sys.version_info[:2])'],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30,
            universal_newlines=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _candidates(version):
    """Where a Python may be, cheapest first."""
    names = ('python' + version, 'python3')
    yield sys.executable
    for path in (None, '/usr/bin:/usr/local/bin'):
        for name in names:
            yield shutil.which(name, path=path)
    pyenv = pathlib.Path(os.environ.get('PYENV_ROOT') or
                         pathlib.Path.home() / '.pyenv')
    for found in sorted(pyenv.glob('versions/%s.*/bin/python' % version)):
        yield str(found)
    try:
        yield uv('python', 'find', version,
                 UV_PYTHON_PREFERENCE='only-managed')
    except Failure:
        return


def find_python(*versions, **options):
    """An interpreter of the first of some versions that can be had.

    :param versions: for example '3.8'
    :param install: whether uv may install one (True)
    :returns: the path of an interpreter
    :raises Failure: when there is none; it names what was looked for
    """
    for version in versions:
        for candidate in _candidates(version):
            if candidate and _version_of(candidate) == version:
                return candidate
    reason = 'uv was not asked to install it'
    if options.get('install', True):
        say('no Python %s here: asking uv for it' % versions[0])
        try:
            uv('python', 'install', versions[0],
               UV_PYTHON_DOWNLOADS='manual')
            return uv('python', 'find', versions[0],
                      UV_PYTHON_PREFERENCE='only-managed')
        except Failure as e:
            reason = str(e)
    raise Failure(
        'Python %s is missing: it is not on PATH, in /usr/bin, among the '
        'versions of pyenv or among those of uv; %s' % (
            ' or '.join(versions), reason))


def libvirt_requirement():
    """The libvirt-python that fits the libvirt of this machine.

    :returns: a requirement, or None where libvirt's headers are missing
    """
    try:
        version = run(['pkg-config', '--modversion', 'libvirt'])
    except (OSError, Failure):
        return None
    # The bindings of an older patch release build, those of a newer one need
    # not.
    return 'libvirt-python==%s.*,<=%s' % (version.rsplit('.', 1)[0], version)


def _pbr_env():
    """Give pbr a version where neither Git nor an sdist does."""
    if (TOP / 'PKG-INFO').exists():
        return {}
    try:
        run(['git', 'rev-parse', '--verify', 'HEAD'])
    except (OSError, Failure):
        return {'PBR_VERSION': '0.0.0'}
    return {}


def install_project(python, constraints=None):
    """Install this project in editable mode.

    :param python: the interpreter of the virtualenv
    :param constraints: a file of pins that its dependencies must respect
    """
    pins = ['--constraint', constraints] if constraints else []
    uv('pip', 'install', '--python', python, '--editable', TOP, *pins,
       **_pbr_env())


def _digest(*parts):
    """What tells one virtualenv from another: strings, and files' text."""
    digest = hashlib.sha256()
    for part in parts + (TOP / 'setup.cfg', TOP / 'requirements.txt',
                         str(TOP)):
        if isinstance(part, pathlib.Path):
            part = part.read_text()
        digest.update(part.encode() + b'\0')
    return digest.hexdigest()


def _is_made(folder, digest):
    """Whether a virtualenv is there, whole and as it would be made now.

    :raises Failure: when something else is there
    """
    stamp = folder / STAMP
    if (stamp.exists() and stamp.read_text() == digest and
            _version_of(str(folder / 'bin' / 'python'))):
        return True
    if folder.exists() and any(folder.iterdir()) and not (
            folder / 'pyvenv.cfg').exists():
        raise Failure('%s is no virtualenv and not empty' % folder)
    return False


def make_without_nova(folder, python, libvirt=False):
    """Make a virtualenv for the unit tests, or find that it is there already.

    :param folder: where; an older virtualenv there is replaced
    :param python: an interpreter
    :param libvirt: whether libvirt-python is to be in it
    :returns: the path of the virtualenv's interpreter
    :raises Failure: when a package cannot be had
    """
    folder = pathlib.Path(folder).absolute()
    interpreter = folder / 'bin' / 'python'
    wanted = TOP / 'test-requirements.txt'
    bindings = libvirt_requirement() if libvirt else None
    if libvirt and not bindings:
        raise Failure('pkg-config finds no headers of libvirt')
    digest = _digest(wanted, _version_of(python), str(bindings))
    if not _is_made(folder, digest):
        say('virtualenv in %s with %s' % (folder, python))
        uv('venv', '--clear', '--python', python, folder)
        uv('pip', 'install', '--python', interpreter, '--requirement', wanted,
           *([bindings] if bindings else []))
        install_project(interpreter)
        (folder / STAMP).write_text(digest)
    return interpreter


def make_newest(folder):
    """Make a virtualenv with the newest Nova of PyPI, a pre-release or not.

    Nothing is pinned: it is made to see what breaks next.

    :param folder: where; what is there is replaced
    :returns: (the path of the virtualenv's interpreter, the release)
    :raises Failure: when an interpreter or a package cannot be had
    """
    known = releases()[releases().sections()[-1]]
    wanted = known['tests_require'].split() + [
        name for name in known['requires'].split() if '==' not in name]
    folder = pathlib.Path(folder).absolute()
    interpreter = folder / 'bin' / 'python'
    uv('venv', '--clear', '--python',
       find_python(*reversed(known['pythons'].split())), folder)
    # a pre-release in the bound admits pre-releases, of these alone
    uv('pip', 'install', '--python', interpreter, 'nova>=0.0.0a0',
       'openstack-placement>=0.0.0a0', *wanted)
    install_project(interpreter)
    link_etc(interpreter, folder)
    return interpreter, run([interpreter, '-c', (
        'from importlib import metadata; print(metadata.version("nova"))')])


def link_etc(interpreter, folder):
    """Link etc/nova to where Nova's fixtures look for api-paste.ini."""
    site = pathlib.Path(run([interpreter, '-c', 'import sysconfig; '
                             'print(sysconfig.get_path("purelib"))']))
    (site / 'etc').mkdir(exist_ok=True)
    (site / 'etc' / 'nova').symlink_to(folder / 'etc' / 'nova')


def make(release, folder, python=None, libvirt=True):
    """Make a virtualenv with a Nova, or find that it is there already.

    :param release: one of the table, for example '34.0.0'
    :param folder: where; an older virtualenv there is replaced
    :param python: an interpreter or a version; by default the first of the
        table's versions that can be had
    :param libvirt: False to leave libvirt-python out, as happens by itself
        where libvirt's headers are missing
    :returns: the path of the virtualenv's interpreter
    :raises Failure: when an interpreter or a package cannot be had
    """
    entry = release_entry(release)
    pins = constraints_file(release)
    folder = pathlib.Path(folder).absolute()
    interpreter = folder / 'bin' / 'python'
    if python is None:
        python = find_python(*entry['pythons'].split())
    elif re.match(r'\d+\.\d+$', python):
        python = find_python(python)
    version = _version_of(python)
    if not version:
        raise Failure('%s is no Python that runs' % python)
    bindings = libvirt_requirement() if libvirt else None

    digest = _digest(pins, version, str(bindings))
    if _is_made(folder, digest):
        say('nova %s is in %s' % (release, folder))
        return interpreter

    say('nova %s: virtualenv in %s with %s' % (release, folder, python))
    uv('venv', '--clear', '--python', python, folder)
    say('nova %s: installing %s' % (release, pins.relative_to(TOP)))
    # The day counts for what sdists are built with, too.
    uv('pip', 'install', '--python', interpreter, '--requirement', pins,
       UV_EXCLUDE_NEWER=entry['cutoff'])
    if bindings:
        say('nova %s: compiling %s' % (release, bindings))
        uv('pip', 'install', '--python', interpreter, bindings)
    elif libvirt:
        say('nova %s: no libvirt-python, since pkg-config finds no headers '
            'of libvirt' % release)
    say('nova %s: installing this project' % release)
    install_project(interpreter, pins)
    link_etc(interpreter, folder)
    (folder / STAMP).write_text(digest)
    return interpreter
