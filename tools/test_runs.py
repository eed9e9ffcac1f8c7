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

"""Runs of stestr: which ones there are, and what they count."""

import collections
import os
import re
import subprocess
import zlib

import nova_venv

VENVS = nova_venv.TOP / '.venvs'
# nova.monkey_patch reads it; releases to 33 have eventlet only.
NO_EVENTLET = 'OS_NOVA_DISABLE_EVENTLET_PATCHING'
# Seconds for one test; the first one on the lab brings the lab up.
TEST_TIMEOUT = '600'
LAB_TEST_TIMEOUT = '1800'
# The functional tests that CI runs where it has no time for all: not those
# that only show what Nova does without the guard, nor those that take minutes;
# of Train those that show both named bugs; with native threads what runs in
# them.
GUARDED = r'^(?!.*(_stock$|killed_in_settlement))'
MOST = {
    '20.1.1': GUARDED + '|test_evacuation_races|test_restart_in_live',
    '34.0.0-threading': GUARDED + '.*test_(activation|block_jobs|finish|'
                                  'roll_back|settler|start_up)',
    '34.0.0-eventlet': None}
# Of these CI runs one, another one after each commit.
IN_TURN = ('21.1.1', '25.3.0', '29.2.0', '33.0.2')
# Of the others, and of those whose turn it is not: the guard loads and
# refuses, both named bugs, one roll back, one finish.
SHORT = ('test_activation.*(changed_signature_is|disabled_is|enabled_patches|'
         'form_of_their)|test_evacuation_races.*device_by_port|'
         'test_restart_in_live.*abort_works|test_roll_back.*job_is_aborted|'
         'test_finish.*ended_while_down')
# The lines with which stestr closes a run.
COUNTED = re.compile(r' - (Passed|Failed|Unexpected Success|Skipped|'
                     r'Expected Fail): (\d+)$')
# How it names a test that failed.
FAILED = re.compile(r'\{\d+\} (\S+) .*\.\.\. (FAILED|UNEXPECTED SUCCESS)$')
NO_MATCH = "regex doesn't match with anything"


class Tally(object):
    """What has passed, failed and been skipped so far."""

    def __init__(self):
        self.tests = collections.Counter()
        self.broken = []
        self.failed = []
        self.left_out = []

    def read(self, run, line):
        """Count what one line of stestr's output says of one run."""
        counted = COUNTED.match(line)
        if counted:
            self.tests[counted.group(1)] += int(counted.group(2))
        failed = FAILED.search(line)
        if failed:
            self.failed.append('%s: %s' % (run, failed.group(1)))

    def read_all(self, run, text):
        """Count what the output of another run-tests says."""
        for line in text.splitlines():
            self.read(run, line)
            if line.startswith('NOT RUN '):
                self.left_out.append(line.partition('NOT RUN ')[2])

    def break_off(self, step, reason):
        """Note that a step failed as a whole."""
        self.broken.append('%s: %s' % (step, reason))
        nova_venv.say(self.broken[-1])

    def counts(self):
        """How many tests have passed, failed and been skipped."""
        return (self.tests['Passed'] + self.tests['Expected Fail'],
                self.tests['Failed'] + self.tests['Unexpected Success'],
                self.tests['Skipped'])

    def close(self):
        """Print the closing lines, and return the exit code."""
        passed, failed, skipped = self.counts()
        for text in self.left_out:
            print('NOT RUN %s' % text)
        for text in self.failed + self.broken:
            print('FAILED %s' % text)
        print('%d passed, %d failed, %d skipped' % (
            passed, failed, skipped), flush=True)
        return 1 if failed or self.broken else 0


def headline(text):
    print('\n=== %s' % text, flush=True)


def stestr(name, python, kind, regex, tally, **extra_env):
    """Run the tests of one kind with one interpreter.

    :param name: of the run; its results are kept in .cache/stestr/NAME
    :param python: the interpreter of a virtualenv
    :param kind: 'unit', 'functional', 'libvirt', or 'lab', which runs one at
        a time
    :param regex: which tests, or None for all
    """
    headline('%s tests: %s' % (kind, name))
    env = dict(os.environ, OS_TEST_TIMEOUT=TEST_TIMEOUT, OS_LOG_CAPTURE='1',
               OS_STDOUT_CAPTURE='1', OS_STDERR_CAPTURE='1')
    env.update(extra_env)
    # Nova compiles for longer than a test runs: once is enough.
    env.pop('PYTHONDONTWRITEBYTECODE', None)
    # Old releases of stestr take the first Python on PATH for their workers.
    programs = python.parent
    env['PATH'] = '%s%s%s' % (programs, os.pathsep, os.environ['PATH'])
    env.pop('PYTHON', None)
    results = nova_venv.CACHE / 'stestr' / name
    results.mkdir(parents=True, exist_ok=True)
    command = [str(programs / 'stestr'), '--repo-url', str(results),
               '--top-dir', '.', '--test-path', 'tests/' + kind, 'run']
    if kind == 'lab':
        command.append('--serial')
    elif kind == 'functional':
        # one more than there are: they wait for a quarter of their time
        command += ['--concurrency', str((os.cpu_count() or 1) + 1)]
    command += [regex] if regex else []
    matched = True
    process = subprocess.Popen(
        command, env=env, cwd=str(nova_venv.TOP), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, universal_newlines=True, errors='replace')
    for line in process.stdout:
        print(line.rstrip(), flush=True)
        tally.read(name, line)
        if NO_MATCH in line:
            matched = False
    # A regex may leave a run nothing to do, for which stestr fails.
    if process.wait() and matched:
        tally.break_off(name, 'stestr ended with %d' % process.returncode)


def functional_runs(wanted=()):
    """The functional runs: (name, release, environment).

    :param wanted: releases (34.0.0) or runs (34.0.0-eventlet), or nothing
    """
    runs = []
    for release, entry in nova_venv.releases().items():
        backends = entry.get('functional', '').split()
        for backend in backends:
            name = release if backends == ['eventlet'] else '%s-%s' % (
                release, backend)
            if not wanted or name in wanted or release in wanted:
                runs.append((name, release, environment(backend)))
    return runs


def environment(backend):
    """The environment variables of a functional run.

    :param backend: how Nova runs its threads: 'eventlet' or 'threading'
    """
    return {NO_EVENTLET: str(backend == 'threading').lower(),
            # of Nova and its dependencies; the unit tests show ours
            'PYTHONWARNINGS': 'ignore'}


def in_ci(name):
    """Which tests of a functional run CI has time for.

    :param name: of the run
    :returns: a regular expression, or None for all
    """
    if name in MOST:
        return MOST[name]
    return GUARDED if name == _whose_turn() else SHORT


def first_most(run):
    """Sort key of functional runs: the short ones come last.

    :param run: (name, release, environment)
    """
    return in_ci(run[0]) == SHORT


def _whose_turn():
    """One of IN_TURN, as the commit has it; the first without Git."""
    try:
        commit = nova_venv.run(['git', 'rev-parse', 'HEAD'])
    except (OSError, nova_venv.Failure):
        return IN_TURN[0]
    return IN_TURN[zlib.crc32(commit.encode()) % len(IN_TURN)]
