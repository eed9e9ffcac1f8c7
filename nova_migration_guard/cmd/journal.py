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

"""``journal list`` and ``journal show``: what is written down."""

import typing

from cliff import lister
from cliff import show

from nova_migration_guard.cmd import errors
from nova_migration_guard.cmd import formats
from nova_migration_guard import journal


def _instance(name):
    return name.partition(journal.SEPARATOR)[0].partition('.')[0]


class ListJournal(lister.Lister):
    """List the operations that have begun and not ended.

    What the journal holds is in flight, or was interrupted. A file that is
    damaged is listed as such; the next start of nova-compute sets it aside.
    """

    app: typing.Any
    columns = ('Instance', 'Operation', 'Subject', 'Phase', 'Begun', 'State')

    def take_action(self, parsed_args):
        rows = []
        for name, entry, fault in self.app.host.journal():
            if entry is None:
                rows.append((_instance(name), '', '', '', '',
                             'damaged: %s' % fault))
            else:
                rows.append((
                    entry.instance, entry.operation,
                    entry.subject or 'to %s' % entry.destination,
                    entry.phase, formats.moment(entry.begun), 'ok'))
        for name in self.app.host.rejected():
            rows.append((_instance(name), '', '', '', '',
                         'set aside as %s' % name))
        return self.columns, rows


class ShowJournal(show.ShowOne):
    """Show one operation of an instance.

    What can hold credentials of volumes is not shown.
    """

    app: typing.Any

    def get_parser(self, prog_name):
        parser = super(ShowJournal, self).get_parser(prog_name)
        parser.add_argument('instance', type=formats.instance,
                            metavar='INSTANCE', help="The instance's UUID.")
        parser.add_argument(
            '--subject', help='The image, volume or snapshot that an '
                              'operation on a disk is about. Without it, the '
                              'live migration, or the only operation.')
        return parser

    def take_action(self, parsed_args):
        files = [file for file in self.app.host.journal()
                 if _instance(file.name) == parsed_args.instance]
        for file in files:
            if file.fault:
                raise errors.CommandError(
                    'The entry %s is damaged: %s' % (file.name, file.fault))
        entries = [file.content for file in files]
        if parsed_args.subject is None and len(entries) > 1:
            entries = [entry for entry in entries if entry.subject is None]
            if not entries:
                raise errors.CommandError(
                    'There is more than one operation. Say which by '
                    '--subject.')
        elif parsed_args.subject is not None:
            entries = [entry for entry in entries
                       if entry.subject == parsed_args.subject]
        if not entries:
            raise errors.NotFound('The journal has no such entry of %s.' %
                                  parsed_args.instance)
        return zip(*self._fields(entries[0]))

    @staticmethod
    def _fields(entry):
        common = [('instance', entry.instance),
                  ('operation', entry.operation), ('phase', entry.phase),
                  ('begun', formats.moment(entry.begun)),
                  ('request_id', entry.request_id), ('host', entry.host),
                  ('has_definition', entry.domain_xml is not None)]
        if entry.subject is None:
            return common + [
                ('destination', entry.destination),
                ('migration', entry.migration),
                ('vm_state', entry.vm_state),
                ('block_migration', entry.block_migration)]
        return common + [('subject', entry.subject), ('disk', entry.disk),
                         ('target', entry.target)]
