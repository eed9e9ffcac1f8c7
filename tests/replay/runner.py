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

"""Plays scenarios in processes of their own, and reads what they recorded."""

import os

from tests.replay import environment
from tests.replay import process
from tests.replay import timeline

#: Seconds that one run may take.
LIMIT = 600
LAB_LIMIT = 1800
#: Lines of a log that are shown when a run broke.
TAIL = 20
_NO_EVENTLET = 'OS_NOVA_DISABLE_EVENTLET_PATCHING'


class Broken(Exception):
    """A run gave no result to trust; its text says why."""


def _native_threads(release):
    """Whether nova-compute of a release runs native threads by itself.

    It does from 34 on; earlier ones run on eventlet.
    """
    return int(release.split('.')[0]) >= 34


def _clean_environ(environ, release, guard, record, limit):
    env = {name: value for name, value in environ.items()
           if name == _NO_EVENTLET or not name.startswith(('OS_', 'NMG_'))}
    # the fixtures' own default is eventlet, whatever the release's is
    env.setdefault(_NO_EVENTLET, str(_native_threads(release)).lower())
    env.update({
        'NMG_GUARD': guard,
        'NMG_EVENTS': record,
        'OS_STDOUT_CAPTURE': '1',
        'OS_STDERR_CAPTURE': '1',
        'OS_LOG_CAPTURE': '1',
        'OS_TEST_TIMEOUT': str(limit),
        # Nova's dependencies warn of their own deprecations by the hundred
        'PYTHONWARNINGS': 'ignore',
        'PYTHONPATH': environment.TOP,
        'PYTHONUNBUFFERED': '1',
    })
    return env


def _record_path(folder, name, guard):
    return os.path.join(folder, '%s-%s.json' % (name, guard))


def play(scenario, guards, env, folder, tick, limit=LIMIT, environ=None):
    """Play a scenario, all guards at once.

    Whatever happens, no process is left when this returns.

    :param scenario: Scenario of the catalog
    :param guards: list of 'on' and 'off'
    :param env: Environment with the Nova to run
    :param folder: for the records and the logs
    :param tick: called several times a second
    :param limit: seconds that it may take
    :param environ: environment variables, or None for ours
    :returns: for each guard a Timeline, or a Broken that says why there is
        none
    """
    environ = os.environ if environ is None else environ
    children = []
    try:
        for guard in guards:
            children.append(_start(scenario, guard, env, folder, limit,
                                   environ))
        process.wait(children, tick)
    except OSError as exc:
        return [Broken('cannot run %s: %s' % (env.python, exc))
                for guard in guards]
    finally:
        for child in children:
            child.end()
    results = []
    for guard, child in zip(guards, children):
        try:
            results.append(_result(scenario, guard, child, folder))
        except Broken as exc:
            results.append(exc)
    return results


def _start(scenario, guard, env, folder, limit, environ):
    record = _record_path(folder, scenario.name, guard)
    if os.path.exists(record):
        os.unlink(record)
    if env.lab:
        argv = ['tests.replay.on_lab', scenario.name]
        environ = dict(environ, NOVA_LAB_RELEASE=env.release)
    else:
        argv = ['testtools.run', scenario.test]
    return process.Child(
        [env.python, '-m'] + argv,
        log_path(folder, scenario.name, guard), limit,
        env=_clean_environ(environ, env.release, guard, record, limit),
        cwd=environment.TOP)


def _result(scenario, guard, child, folder):
    """Return the Timeline of a run that has ended.

    :raises Broken: it gave no result, or one that its own test refutes
    """
    if child.too_long:
        raise Broken('the run took longer than %d s' % child.limit)
    code = child.code
    try:
        run = timeline.load(_record_path(folder, scenario.name, guard))
    except timeline.BadRecord as exc:
        if code:
            raise Broken('the test ended with %d' % code)
        raise Broken(str(exc))
    if (run.scenario, run.guard) != (scenario.name, guard):
        raise Broken('asked for %s with the guard %s, the record is of %s '
                     'with the guard %s' % (scenario.name, guard,
                                            run.scenario, run.guard))
    if code and run.safe:
        # what a failed test calls safe is not known to be safe
        raise Broken('the record says %s, but the test ended with %d'
                     % (run.verdict, code))
    return run


def log_path(folder, name, guard):
    """Return where the log of a run is."""
    return os.path.join(folder, '%s-%s.log' % (name, guard))
