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

"""``job list``: what libvirt runs on this host, and who controls it."""

import typing

from cliff import lister

from nova_migration_guard.cmd import errors
from nova_migration_guard import facts
from nova_migration_guard import journal
from nova_migration_guard import libvirt_jobs

# Who controls a job.
NOVA = 'nova'
ADOPTED = 'adopted'
FOREIGN = 'foreign'
UNOWNED = 'unowned'
#: of a guest that arrives: its source's nova-compute
SOURCE = 'source'

_OPERATIONS = {libvirt_jobs.Operation.MIGRATION_IN: ('migration', 'in'),
               libvirt_jobs.Operation.MIGRATION_OUT: ('migration', 'out')}


def _named(member):
    return getattr(member, 'name', str(member)).lower().replace('_', '-')


def _percent(progress):
    return '' if progress is None else '%d%%' % (100 * progress)


def _phase(seen):
    """How far a migration has got, as libvirt shows it."""
    if seen.job.type in (libvirt_jobs.JobType.CANCELLED,
                         libvirt_jobs.JobType.FAILED,
                         libvirt_jobs.JobType.COMPLETED):
        return 'ending'
    known = facts.Facts(host='', vm_state='', task_state=None, records=(),
                        observation=seen)
    if known.job is facts.Job.OUTGOING_POSTCOPY:
        return 'post-copy'
    if seen.job.operation != libvirt_jobs.Operation.MIGRATION_OUT:
        return ''
    return 'memory' if seen.job.copies_memory else 'disks'


def owner(entry, record, runs, adopted=False):
    """Tell who controls a job that this host has started.

    :param entry: the journal's of the operation, or None
    :param record: the :class:`nova_migration_guard.held.Record` of the
        instance, or None
    :param runs: whether a guarded nova-compute runs
    :param adopted: whether it controls a job that an earlier one has started
    """
    if adopted and runs and record is None:
        return ADOPTED
    if record is not None and record.facts is not None:
        return UNOWNED if entry or record.facts.job_is_novas else FOREIGN
    if entry is None:
        return FOREIGN
    return NOVA if runs and record is None else UNOWNED


class ListJobs(lister.Lister):
    """List the jobs that libvirt runs for the guests of this host.

    The owner is "nova" when the running nova-compute controls the job,
    "adopted" when it took the job over from an earlier one, "unowned" when
    Nova started the job and no process controls it, "source" when the guest
    arrives and the other host controls the job, and "foreign" when another
    tool started it, or nothing here says that Nova did.
    """

    app: typing.Any
    columns = ('Instance', 'Kind', 'Direction', 'Disk', 'Phase', 'Progress',
               'Owner')

    def take_action(self, parsed_args):
        host = self.app.host
        timeout = host.options.call_timeout
        jobs = host.jobs()
        try:
            domains = jobs.domains(timeout)
        except Exception as e:
            raise errors.LibvirtAway('libvirt does not list its domains: %s' %
                                     e)
        seen = jobs.observe_each(
            sorted(domains), timeout, host.options.startup_timeout)
        self._entries = [file.content for file in host.journal()
                         if file.content is not None]
        self._records = {file.name: file.content for file in host.held()}
        self._runs = host.nova_compute_runs()
        self._adopted = host.adopted()
        rows = []
        for uuid, observation in seen.items():
            rows.extend(self._rows(uuid, observation))
        return self.columns, rows

    def _rows(self, uuid, seen):
        if seen.job is None or seen.block_jobs is None:
            # it is asked for over the monitor only where there is one
            yield (uuid, 'unknown: %s' % seen.trouble, '', '', '', '', '')
        elif seen.job.active:
            yield self._domain_job(uuid, seen)
        else:
            for block_job in seen.block_jobs:
                yield self._block_job(uuid, block_job)

    def _domain_job(self, uuid, seen):
        kind, direction = _OPERATIONS.get(
            seen.job.operation, (_named(seen.job.operation), ''))
        entry = next((entry for entry in self._entries
                      if entry.instance == uuid and entry.subject is None),
                     None)
        if direction == 'in':
            whose = SOURCE
        elif direction == 'out':
            whose = owner(entry, self._records.get(uuid), self._runs,
                          uuid in self._adopted)
        else:
            whose = FOREIGN
        return (uuid, kind, direction, '', _phase(seen),
                _percent(seen.job.progress), whose)

    def _block_job(self, uuid, block_job):
        entry = next((entry for entry in self._entries
                      if entry.instance == uuid and
                      entry.subject is not None and
                      entry.disk == block_job.disk and
                      entry.operation in journal.BLOCK_OPERATIONS), None)
        if entry is None:
            return (uuid, 'block %s' % _named(block_job.type), '',
                    block_job.disk, '', _percent(block_job.progress), FOREIGN)
        return (uuid, entry.operation, '', block_job.disk, entry.phase,
                _percent(block_job.progress),
                owner(entry, self._records.get(uuid), self._runs))
