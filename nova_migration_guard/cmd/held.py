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

"""``held list`` and ``held show``: what the guard holds, and why."""

import logging
import time
import typing

from cliff import lister
from cliff import show

from nova_migration_guard import advice
from nova_migration_guard.cmd import errors
from nova_migration_guard.cmd import formats

LOG = logging.getLogger(__name__)


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
            fields += describe(record.facts)
        if record.answer:
            fields.append(('answer_to_release', record.answer))
        fields.append(('what_helps', '\n'.join(
            advice.for_held(record, runs))))
        return zip(*fields)


def describe(known):
    """Facts in words, as pairs of names and values.

    :param known: a :class:`nova_migration_guard.facts.Facts`
    """
    return [
        ('task_state', known.task_state), ('vm_state', known.vm_state),
        ('nova_says_on', known.instance_host or known.host),
        ('guest', known.guest.value), ('job', known.job.value),
        ('libvirt_trouble', known.observation.trouble),
        ('destination', known.destination),
        ('destination_says', known.peer.value),
        ('destination_asked_over', known.peer_said),
        ('destination_works', known.peer_works),
        ('journal_phase', known.phase),
        ('open_migrations', ', '.join(
            '%d (%s) to %s' % (record.id, record.status, record.destination)
            for record in known.open_records))]
