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

"""``explain``: the facts and the verdict about one instance, now and dry."""

import dataclasses
import time
import typing

from cliff import show

from nova_migration_guard import advice
from nova_migration_guard import block_verdict
from nova_migration_guard.cmd import describing
from nova_migration_guard.cmd import errors
from nova_migration_guard.cmd import formats
from nova_migration_guard import facts
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import verdict


class Explain(show.ShowOne):
    """Show what the guard would do about an instance, and do nothing.

    The verdict is that of a nova-compute that starts now. It is made of what
    libvirt says now, of the journal, and, of an instance that is held, of
    what nova-compute has last read from Nova's database and heard from the
    destination. Of an instance that is not held the database is not read.
    """

    app: typing.Any

    def get_parser(self, prog_name):
        parser = super(Explain, self).get_parser(prog_name)
        parser.add_argument('instance', type=formats.instance,
                            metavar='INSTANCE', help="The instance's UUID.")
        return parser

    def take_action(self, parsed_args):
        uuid, host = parsed_args.instance, self.app.host
        record = host.held_one(uuid)
        entry, blocks = host.entries(uuid)
        runs = host.nova_compute_runs()
        seen = observe(host, uuid)
        if seen == libvirt_jobs.ABSENT and not (record or entry or blocks):
            raise errors.NotFound(
                'libvirt has no domain %s, the journal no entry, and it is '
                'not held on %s.' % (uuid, host.name))
        known = known_of(host.name, seen, record, entry)
        ruling = verdict.judge(known)
        if ruling.verdict is verdict.Verdict.LEAVE:
            ruling = block_verdict.judge(
                block_verdict.Known(
                    task_state=known.task_state, observation=seen,
                    entries=tuple(blocks), starting=True,
                    snapshot_folder=host.conf.libvirt.snapshots_directory),
                host.options.foreign_block_jobs == 'abort')
        fields = [
            ('instance', uuid), ('host', host.name),
            ('verdict', ruling.verdict.name),
            ('meaning', ruling.verdict.value), ('reason', ruling.reason),
            ('api_refuses_actions', ruling.refuse),
            ('mode', host.options.mode), ('nova_compute_runs', runs),
            ('controlled_by', self._controller(record, entry, blocks, runs)),
            ('nova_read', formats.moment(record.written) if record else
             'no: it is not held')]
        fields += describing.describe(known)
        fields.append(('what_helps', '\n'.join(
            advice.for_ruling(uuid, known, ruling))))
        return zip(*fields)

    @staticmethod
    def _controller(record, entry, blocks, runs):
        if record is not None:
            return 'no one: it is held'
        if not (entry or blocks):
            return 'nothing of Nova is in flight'
        return 'nova-compute' if runs else 'no one: nova-compute is down'


def observe(host, uuid):
    """Ask libvirt about one instance. That it is away is an answer, too.

    :param host: a :class:`nova_migration_guard.cmd.host.Host`
    :returns: a :class:`nova_migration_guard.libvirt_jobs.Observation`
    """
    try:
        return host.jobs().observe(uuid, host.options.call_timeout)
    except errors.LibvirtAway as e:
        return libvirt_jobs.Observation(trouble=str(e))


def known_of(name, seen, record, entry):
    """Put together what can be known without Nova.

    :param name: the host's
    :param seen: what libvirt says now
    :param record: the :class:`nova_migration_guard.held.Record`, or None
    :param entry: the journal's, or None
    :returns: a :class:`nova_migration_guard.facts.Facts`
    """
    if record is not None and record.facts is not None:
        known = record.facts
    else:
        known = facts.Facts(
            host=name, vm_state=entry.vm_state if entry else facts.ACTIVE,
            task_state=facts.MIGRATING if entry else None, records=(),
            observation=seen)
    return dataclasses.replace(
        known, observation=seen, observed_at=time.time(),
        phase=entry.phase if entry else None,
        journaled_destination=entry.destination if entry else None,
        journaled_migration=entry.migration if entry else None)
