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

"""Plays all variants, and says what each leaves behind."""

import time

from tests.lab import clients
from tests.lab import lab as lab_module
from tests.lab import leftovers
from tests.lab import progress
from tests.lab import settings as lab_settings
from tests.lab import variants
from tests.lab import waiting

#: Seconds in which a server must have been settled; and those after which what
#: an idle server has left behind is taken to stay.
SETTLES = 120
STAYS = 15


def play(lab, variant, guard):
    """Play one variant.

    :param lab: Lab
    :param variant: Variant
    :param guard: whether nova-compute has the guard
    :returns: list of (moment, list of texts): what is left after the restart,
        and after a request for B
    """
    progress.say('=== %s, %s' % (
        variant.name, 'guarded' if guard else 'stock'))
    lab.configure_computes(guard, lab_settings.QUICK_OPTIONS)
    server = lab.boot('host-a')
    try:
        if lab.parts.full:
            lab.attach_volume(server)
        variants.begin(lab, server, variant)
        lab.state(server, 'in mid migration')
        variant.play(lab, server)
        found = [('after the restart', _settle(lab, server))]
        lab.mend()
        host = lab.nova_says(server)[2]
        other = 'host-b' if host == 'host-a' else 'host-a'
        outcome = _request(lab, server, other)
        found.append(('request for %s: %s' % (other, outcome),
                      _settle(lab, server)))
        return found
    finally:
        lab.mend()
        lab.forget(server)


def _settle(lab, server):
    """Wait until nothing is left, or until it stays."""
    seen = []

    def settled():
        now = time.monotonic()
        state = lab.observe(server)
        left = leftovers.of(state)
        if not seen or seen[0] != left:
            seen[:] = [left, now]
        return not left or (state.server.task_state is None and
                            now - seen[1] > STAYS)
    try:
        waiting.wait_until(settled, 'it is settled', SETTLES, 2)
    except waiting.WaitTimeout:
        progress.say('not settled')
    return leftovers.of(lab.state(server, 'settled'))


def _request(lab, server, host):
    try:
        lab.live_migrate(server, host)
        return lab.finish_migration(server)
    except clients.ApiError as e:
        return 'HTTP %d' % e.status
    except waiting.WaitTimeout as e:
        return str(e).partition('\n')[0]


def run(names, guards, settings):
    """Play variants on a lab, which is brought up if it is not.

    :param names: of variants; empty for all
    :param guards: list of True and False
    :param settings: Settings
    :returns: exit code
    """
    lab, brought_up = lab_module.connect(settings)
    try:
        # to switch the guard, all of nova-compute is started again
        for guard in guards:
            for name in names or variants.VARIANTS:
                _report(lab, variants.VARIANTS[name], guard)
    finally:
        if brought_up:
            lab.parts.down()
    return 0


def _report(lab, variant, guard):
    """Play a variant, and print what it leaves behind."""
    try:
        found = play(lab, variant, guard)
    except (AssertionError, OSError, RuntimeError) as e:
        found = [('broke: %s' % str(e).partition('\n')[0], [])]
    print('%s, %s' % (variant.title, 'guarded' if guard else 'stock'))
    for moment, texts in found:
        print('  %s:' % moment)
        for text in texts or ['nothing is left']:
            print('    ' + text)
    print(flush=True)


def main(args):
    """What tests/lab/survey does.

    :param args: release, root, form, guard, variants
    :returns: exit code
    """
    return run(args.variants, {
        'on': [True], 'off': [False], 'both': [False, True]}[args.guard],
        lab_settings.Settings(release=args.release, root=args.root,
                              form=args.form))
