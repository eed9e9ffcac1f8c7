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

"""Command line of ``tools/replay``."""

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile

from tests.replay import catalog
from tests.replay import environment
from tests.replay import lab_environment
from tests.replay import page
from tests.replay import process
from tests.replay import progress
from tests.replay import runner
from tests.replay import style
from tests.replay import text
from tests.replay import timeline

#: Exit codes.
SAFE, UNSAFE, BROKEN = 0, 1, 2

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_EPILOG = """\
scenarios:
%(scenarios)s

exit code:
  0  every guarded run is safe (with --guard off: the runs worked)
  1  a guarded run is not safe
  2  bad usage, or a run broke and no guarded run was unsafe

examples:
  tools/replay
  tools/replay --scenario restart-mid-migration --html replay.html
  tools/replay --release 20.1.1 --guard off
  tools/replay --on lab --scenario completed-while-down
"""


class Interrupted(BaseException):
    """A signal asks us to end.

    :ivar number: of the signal
    """

    def __init__(self, number):
        super(Interrupted, self).__init__(number)
        self.number = number


def _scenario_names(value):
    """Return the names in one --scenario."""
    names = []
    for name in value.split(','):
        name = name.strip()
        if name == 'all':
            names.extend(catalog.names())
        elif name in catalog.SCENARIOS:
            names.append(name)
        else:
            raise argparse.ArgumentTypeError(
                'unknown scenario %r; known are %s, or all'
                % (name, ', '.join(catalog.names())))
    return names


def _release(value):
    if not re.match(r'^\d+\.\d+\.\d+$', value):
        raise argparse.ArgumentTypeError(
            '%r is no release of Nova such as 34.0.0' % value)
    return value


def _seconds(value):
    try:
        seconds = int(value)
    except ValueError:
        seconds = 0
    if seconds < 1:
        raise argparse.ArgumentTypeError(
            '%r is not a number of seconds above 0' % value)
    return seconds


def _parser():
    scenarios = '\n'.join('  %-22s %s' % (item.name, item.title)
                          for item in catalog.SCENARIOS.values())
    parser = argparse.ArgumentParser(
        prog='tools/replay',
        description="Play known failures of Nova on Nova's own test "
        'fixtures, stock beside guarded, and show each as a timeline. Needs '
        'no root; makes its own virtualenv in .venvs/ the first time. Or play '
        'them with real nova-compute, libvirtd and QEMU, as root.',
        epilog=_EPILOG % {'scenarios': scenarios},
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--scenario', metavar='NAME', type=_scenario_names, action='append',
        help='what to play; may be repeated, or be a list with commas '
        '(default: all)')
    parser.add_argument(
        '--on', choices=('fixtures', 'lab'), default='fixtures',
        help="Nova's test fixtures (default), or the lab of tests/lab, which "
        'is brought up if it is not')
    parser.add_argument(
        '--guard', choices=('on', 'off', 'both'), default='both',
        help='play with the guard, without, or both (default)')
    parser.add_argument(
        '--html', metavar='FILE',
        help='also write the timelines as a page with pictures')
    parser.add_argument(
        '--json', action='store_true',
        help='print a list of objects with scenario, guard, release, '
        'verdict, safe and events, and nothing else')
    parser.add_argument(
        '--release', metavar='R', type=_release,
        help="Nova's release (default: the newest that a Python of this "
        'machine runs)')
    parser.add_argument(
        '--python', metavar='PY',
        help='interpreter for the virtualenv, a path or a name on PATH')
    parser.add_argument(
        '--venv', metavar='FOLDER',
        help='use this virtualenv, which has Nova, instead')
    parser.add_argument(
        '--timeout', metavar='SECONDS', type=_seconds,
        help='how long one run may take (default: %d, on the lab %d)' % (
            runner.LIMIT, runner.LAB_LIMIT))
    parser.add_argument(
        '--verbose', action='store_true',
        help='show the logs, and keep them')
    return parser


def parse(argv):
    """Return the options; leave with 2 and a message when they are bad."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.venv and options.python:
        parser.error('--venv has a Python of its own: leave out --python')
    options.lab = options.on == 'lab'
    known = [item.name for item in catalog.SCENARIOS.values()
             if item.lab or not options.lab]
    wanted = [name for names in options.scenario or [known]
              for name in names]
    unknown = sorted(set(wanted).difference(known))
    if unknown:
        parser.error('not on the lab: %s' % ', '.join(unknown))
    if options.lab and (options.venv or options.python):
        parser.error('the lab has virtualenvs of its own: leave out --venv '
                     'and --python')
    options.timeout = options.timeout or (
        runner.LAB_LIMIT if options.lab else runner.LIMIT)
    # in the order of the table, each once
    options.scenario = [name for name in catalog.names() if name in wanted]
    options.guards = {'on': ['on'], 'off': ['off'],
                      'both': ['off', 'on']}[options.guard]
    if options.html is not None:
        try:
            page.check(options.html)
        except OSError as exc:
            parser.error('--html %s: %s' % (options.html,
                                            exc.strerror or exc))
    return options


class Replay(object):
    """One call of the program: its runs, and what became of them."""

    def __init__(self, options, out, err, folder):
        self.options = options
        self.out = out
        self.style = style.for_stream(out)
        self.progress = progress.Progress(err)
        self.folder = folder
        self.runs = []
        self.broken = []
        self._lab = None

    def width(self):
        # what a pipe or a file gets is read on some terminal
        return max(20, shutil.get_terminal_size((100, 24)).columns)

    def environment(self):
        """Return the Environment to run in."""
        options = self.options
        if options.lab:
            self._lab = lab_environment.Lab(options.release, self.progress)
            return self._lab.up(os.path.join(self.folder, 'lab.log'))
        if options.venv:
            return environment.existing(options.venv, options.release)
        return environment.own(
            environment.choose(options.release, options.python),
            self.progress, os.path.join(self.folder, 'virtualenv.log'))

    def play(self):
        """Play all, show each scenario as soon as its runs are done."""
        env = self.environment()
        guards = self.options.guards
        # stock and guarded at once where there is more than one processor,
        # but there is one lab
        batches = [guards] if (os.cpu_count() or 1) > 1 and not env.lab else [
            [guard] for guard in guards]
        total = len(self.options.scenario) * len(batches)
        number = 0
        for name in self.options.scenario:
            done = []
            for batch in batches:
                number += 1
                self.progress.begin('[%d/%d] %s, %s nova %s' % (
                    number, total, name,
                    ' and '.join(timeline.KINDS[guard] for guard in batch),
                    env.release))
                done.extend(self._batch(env, catalog.SCENARIOS[name], batch))
            self.runs.extend(done)
            if done and not self.options.json:
                self._print(text.scenario(done, self.width(), self.style) +
                            [''])

    def _batch(self, env, scenario, batch):
        """Play a scenario with the guards of a batch, side by side.

        :returns: list of Timeline, of the runs that worked
        """
        results = runner.play(scenario, batch, env, self.folder,
                              self.progress.tick, self.options.timeout)
        broken = [guard for guard, item in zip(batch, results)
                  if isinstance(item, runner.Broken)]
        self.progress.end('; '.join(
            '%s %s' % (timeline.KINDS[guard],
                       'BROKE: %s' % item if guard in broken
                       else item.verdict)
            for guard, item in zip(batch, results)))
        for guard in batch:
            if guard in broken or self.options.verbose:
                self.tail(runner.log_path(self.folder, scenario.name, guard),
                          None if self.options.verbose else runner.TAIL)
        self.broken.extend((scenario.name, guard) for guard in broken)
        return [item for guard, item in zip(batch, results)
                if guard not in broken]

    def tail(self, log, count=runner.TAIL):
        """Show the end of a log, and where the rest is."""
        for line in process.last_lines(log, count):
            self.progress.say('    ' + line)
        if os.path.exists(log):
            self.progress.say('    the whole log: %s' % log)

    def close(self):
        """Take down what was brought up for the runs."""
        if self._lab:
            self._lab.down()

    def finish(self):
        """Print what is left to print; return the exit code."""
        if self.options.json:
            self._print([timeline.dumps(self.runs)])
        elif self.runs:
            self._print([text.legend(self.style), ''] +
                        text.summary(self.runs, self.width(), self.style))
        if self.options.html is not None and self.runs:
            page.write(self.options.html, self.runs)
            self.progress.say('wrote %s' % self.options.html)
        elif self.options.html is not None:
            self.progress.say('no page, since no run worked')
        if any(run.guard == 'on' and not run.safe for run in self.runs):
            return UNSAFE
        return BROKEN if self.broken else SAFE

    def _print(self, lines):
        self.out.write('\n'.join(lines) + '\n')
        self.out.flush()


def _on_signal(number, _frame):
    # the clean-up that this begins has bounds of its own, and a second
    # Ctrl-C in the midst of it would leave a child behind
    for other in _SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Interrupted(number)


def _run(options, out, err):
    """Play, and keep the logs where they are of use."""
    keep = True
    folder = tempfile.mkdtemp(prefix='nova-migration-guard-replay-')
    replay = Replay(options, out, err, folder)
    try:
        try:
            replay.play()
        except environment.Failure as exc:
            replay.progress.stop()
            replay.progress.say('tools/replay: %s' % exc)
            logs = [log for log in (os.path.join(folder, name) for name in (
                'virtualenv.log', 'lab.log')) if os.path.exists(log)]
            keep = bool(logs)
            for log in logs:
                replay.tail(log)
            return BROKEN
        code = replay.finish()
        keep = code != SAFE or options.verbose
        if keep and not replay.broken:
            replay.progress.say('the logs are in %s' % folder)
        return code
    except BrokenPipeError:
        keep = False
        raise
    except Interrupted as exc:
        replay.progress.stop()
        replay.progress.say('tools/replay: interrupted')
        keep = False
        return 128 + exc.number
    finally:
        replay.close()
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def main(argv=None):
    """Run the program; return its exit code."""
    options = parse(sys.argv[1:] if argv is None else argv)
    for number in _SIGNALS:
        # what nohup ignores stays ignored
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _on_signal)
    try:
        return _run(options, sys.stdout, sys.stderr)
    except BrokenPipeError:
        # the reader of our output left; the interpreter would complain of
        # it once more when it flushes stdout at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as exc:
        sys.stderr.write('tools/replay: %s\n' % exc)
        return BROKEN
