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

"""``held list``, ``show`` and ``release``: what the guard holds, and why."""

import getpass
import logging
import time
import typing

from cliff import command
from cliff import lister
from cliff import show

from nova_migration_guard import advice
from nova_migration_guard.cmd import describing
from nova_migration_guard.cmd import errors
from nova_migration_guard.cmd import explain
from nova_migration_guard.cmd import formats
from nova_migration_guard import release
from nova_migration_guard import verdict
from nova_migration_guard import words

LOG = logging.getLogger(__name__)

# Seconds between two looks for nova-compute's answer.
POLL_INTERVAL = 1


def warn_of_age(host, files):
    """Say when what is shown may be out of date.

    :param host: the :class:`nova_migration_guard.cmd.host.Host`
    :param files: the records that are shown
    """
    if not host.options.enabled:
        LOG.warning('[migration_guard] enabled is not set in the files that '
                    'were read.')
    written = [file.content.written for file in files if file.content]
    if written and not host.nova_compute_runs():
        LOG.warning('No guarded nova-compute runs here. What is shown was '
                    'written %d s ago.', time.time() - max(written))


class ListHeld(lister.Lister):
    """List the instances that are held until it is certain what to do."""

    app: typing.Any
    columns = ('Instance', 'Since', 'Attempts', 'Next attempt', 'Reason')

    def take_action(self, parsed_args):
        files = self.app.host.held()
        warn_of_age(self.app.host, files)
        return self.columns, [self._row(*file) for file in files]

    @staticmethod
    def _row(name, record, fault):
        if record is None:
            return name, '', '', '', 'the record is damaged: %s' % fault
        return (record.instance, formats.moment(record.since),
                record.attempts, formats.moment(record.next_attempt),
                record.reason)


class ShowHeld(show.ShowOne):
    """Show what is known of an instance that is held, and what helps."""

    app: typing.Any

    def get_parser(self, prog_name):
        parser = super(ShowHeld, self).get_parser(prog_name)
        parser.add_argument('instance', type=formats.instance,
                            metavar='INSTANCE', help="The instance's UUID.")
        return parser

    def take_action(self, parsed_args):
        record = self.app.host.held_one(parsed_args.instance)
        if record is None:
            raise errors.NotFound('%s is not held on %s.' % (
                parsed_args.instance, self.app.host.name))
        runs = self.app.host.nova_compute_runs()
        fields = [
            ('instance', record.instance), ('host', record.host),
            ('since', formats.moment(record.since)),
            ('reason', record.reason), ('verdict', 'HOLD'),
            ('attempts', record.attempts),
            ('last_attempt', formats.moment(record.written)),
            ('next_attempt', formats.moment(record.next_attempt)
             if runs else 'when nova-compute starts'),
            ('nova_compute_runs', runs),
            ('may_be_deleted', record.deletable)]
        if record.facts is not None:
            fields += describing.describe(record.facts)
        if record.answer:
            fields.append(('answer_to_release', record.answer))
        fields.append(('what_helps', '\n'.join(
            advice.for_held(record, runs))))
        return zip(*fields)


class ReleaseHeld(command.Command):
    """Say which side's guest is kept, where the guard cannot find out.

    The word is written down, and nova-compute carries it out: the migration
    is rolled back when the source is kept, and finished when the destination
    is. It is refused where the guest could run twice, where the side that is
    to be kept has no guest, and while a job runs. Asked twice.
    """

    app: typing.Any

    def get_parser(self, prog_name):
        parser = super(ReleaseHeld, self).get_parser(prog_name)
        parser.add_argument('instance', type=formats.instance,
                            metavar='INSTANCE', help="The instance's UUID.")
        parser.add_argument(
            '--keep', required=True,
            choices=[keep.value for keep in release.Keep],
            help='Whose guest is kept: that of this host, the source, or '
                 "that of the migration's destination.")
        parser.add_argument(
            '--yes', action='count', default=0,
            help='Answer one question with yes. To be asked nothing, give it '
                 'twice.')
        parser.add_argument(
            '--wait', type=float, default=60, metavar='SECONDS',
            help='How long to wait for the answer of a nova-compute that '
                 'runs, in seconds. Default: 60.')
        return parser

    def take_action(self, parsed_args):
        host, uuid = self.app.host, parsed_args.instance
        keep = release.Keep(parsed_args.keep)
        if host.options.mode != 'enforce':
            raise errors.Refused('[migration_guard] mode is %s: nothing is '
                                 'carried out.' % host.options.mode)
        record = host.held_one(uuid)
        if record is None:
            raise errors.NotFound('%s is not held on %s.' % (uuid, host.name))
        if record.facts is None:
            raise errors.Refused('What is true of the instance could not be '
                                 'read: %s' % record.reason)
        known = explain.known_of(
            host.name, explain.observe(host, uuid), record,
            host.entries(uuid)[0])
        # what nova-compute alone can tell is taken to be well
        told = release.judge(known, keep, fenced=True, has_disk=True)
        if told.verdict is verdict.Verdict.HOLD:
            raise errors.Refused('Refused: %s.' % told.reason)
        self._ask(parsed_args.yes, record, keep, known)
        runs = host.nova_compute_runs()
        host.say(words.now(uuid, host.name, keep, getpass.getuser()))
        if host.held_one(uuid) is None:
            host.take_back(uuid)
        self._wait(uuid, runs, parsed_args.wait if runs else 0)

    def _ask(self, yes, record, keep, known):
        other = known.destination
        questions = (
            '%s is held: %s.\nKeep its guest at the %s, %s, and end what '
            'there is of it at %s? [yes/no] ' % (
                (record.instance, record.reason, keep.value) +
                ((record.host, other) if keep is release.Keep.SOURCE else
                 (other, record.host))),
            'If this is wrong, the data of the guest can be lost. Type the '
            'UUID of the instance to go on: ')
        answers = ('yes', record.instance)
        for question, answer in list(zip(questions, answers))[yes:]:
            self.app.stderr.write(question)
            self.app.stderr.flush()
            if self.app.stdin.readline().strip().lower() != answer:
                raise errors.CommandError(
                    'Not confirmed; nothing was written.')

    def _wait(self, uuid, runs, seconds):
        host, deadline = self.app.host, time.monotonic() + seconds
        while True:
            answered = not host.has_word(uuid)
            record = host.held_one(uuid)
            if record is None:
                self.app.stdout.write('It is not held any more.\n')
                return
            if answered:
                raise errors.Refused('Refused: %s.' % record.answer)
            if time.monotonic() >= deadline:
                break
            time.sleep(POLL_INTERVAL)
        raise errors.Pending(
            'The word is written down. %s' % (
                'nova-compute has not carried it out yet: %s' % record.reason
                if runs else 'nova-compute reads it when it starts.'))
