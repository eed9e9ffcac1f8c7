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

"""Tables of verdicts for the documentation, made by asking the verdict's code.

Each cell is what the guard decides for facts that are put together here, so a
table cannot say anything else than the code does.
"""

import dataclasses

from docutils.parsers import rst

from nova_migration_guard import facts
from nova_migration_guard import journal
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import metrics
from nova_migration_guard import release
from nova_migration_guard import verdict

State = libvirt_jobs.State
Paused = libvirt_jobs.PausedReason
Shutoff = libvirt_jobs.ShutoffReason
Operation = libvirt_jobs.Operation
Guest, Job, Peer = facts.Guest, facts.Job, facts.Peer

_NO_JOB = libvirt_jobs.DomainJob()


def _job(operation):
    return libvirt_jobs.DomainJob(libvirt_jobs.JobType.UNBOUNDED, operation)


def _seen(state, reason, job=_NO_JOB):
    return libvirt_jobs.Observation(
        present=True, state=state, reason=reason, persistent=True, job=job,
        block_jobs=(), disks=())


_INCOMING = _seen(State.PAUSED, Paused.MIGRATION,
                  _job(Operation.MIGRATION_IN))

#: What libvirt says, for each place of the guest without a job.
GUESTS = {
    Guest.HERE: _seen(State.RUNNING, 1),
    Guest.OFF: _seen(State.SHUTOFF, Shutoff.DESTROYED),
    Guest.STOPPED: _seen(State.SHUTOFF, 0),
    Guest.SUSPENDED: _seen(State.PAUSED, Paused.MIGRATION),
    Guest.SPLIT: _seen(State.PAUSED, Paused.POSTCOPY),
    Guest.ABSENT: libvirt_jobs.ABSENT,
    Guest.UNKNOWN: dataclasses.replace(
        _seen(State.NOSTATE, 0), state=State.NOSTATE),
}

#: The same for each job.
JOBS = {
    Job.OUTGOING: _seen(State.RUNNING, 1, _job(Operation.MIGRATION_OUT)),
    Job.OUTGOING_POSTCOPY: _seen(State.PAUSED, Paused.POSTCOPY,
                                 _job(Operation.MIGRATION_OUT)),
    Job.INCOMING: _INCOMING,
    Job.OTHER: _seen(State.RUNNING, 1, _job(Operation.BACKUP)),
    Job.UNKNOWN: dataclasses.replace(
        _seen(State.RUNNING, 1, None), trouble='no answer within 10 s'),
}

_RECORD = facts.Record(1, 'running', 'source', 'destination', 1.0, 'its')


def _facts(seen, **changes):
    """Facts of a migration that has reached libvirt."""
    return facts.Facts(**dict({
        'host': 'source', 'instance_host': 'source', 'vm_state': 'active',
        'task_state': 'migrating', 'records': (_RECORD,),
        'observation': seen, 'observed_at': 2.0, 'phase': journal.STARTED,
        'journaled_destination': 'destination',
        'journaled_migration': 'its'}, **changes))


def _asked(seen, peer, **changes):
    return _facts(seen, asked='destination', peer=peer,
                  peer_said='nova-compute', **changes)


#: Cases that are no matter of guest, job and destination alone.
CASES = (
    ('Nothing is in flight',
     _facts(GUESTS[Guest.HERE], task_state=None, records=(), phase=None,
            journaled_destination=None)),
    ('A request has come that this nova-compute is about to begin',
     _facts(GUESTS[Guest.HERE], phase=None, journaled_destination=None,
            records=(dataclasses.replace(_RECORD, status='accepted'),),
            requested=frozenset([1]))),
    ('The migration never reached libvirt',
     _facts(GUESTS[Guest.HERE], phase=journal.PREPARING,
            records=(dataclasses.replace(_RECORD, status='queued'),))),
    ('A migration job runs, and neither the journal nor a record has it',
     _facts(JOBS[Job.OUTGOING], task_state=None, records=(), phase=None,
            journaled_destination=None)),
    ('A migration job runs that the journal knows, on_restart is adopt',
     _facts(JOBS[Job.OUTGOING], adopts=True)),
    ('The same, and another migration is open as well',
     _facts(JOBS[Job.OUTGOING], adopts=True, records=(
         _RECORD, dataclasses.replace(_RECORD, id=2, uuid='another')))),
    ('A migration job runs in post-copy, and the journal does not know it',
     _facts(JOBS[Job.OUTGOING_POSTCOPY], phase=None,
            journaled_destination=None, journaled_migration=None)),
    ('Post-copy has failed',
     _facts(_seen(State.PAUSED, Paused.POSTCOPY_FAILED,
                  _job(Operation.MIGRATION_OUT)))),
    ('A migration job runs, and the network does not reach the destination',
     _facts(JOBS[Job.OUTGOING], reachable=False)),
    ('The guest is here, and the destination still works for the migration',
     _asked(GUESTS[Guest.HERE], Peer.ABSENT, peer_works=True)),
    ('The guest is away, and runs on a host that the journal does not name',
     _asked(GUESTS[Guest.ABSENT], Peer.RUNS,
            journaled_destination='another')),
    ('The guest is away, paused there, and Nova says that it is paused',
     _asked(GUESTS[Guest.ABSENT], Peer.THERE, vm_state='paused')),
    ('No record is open, the guest is away, and its last migration left here',
     _facts(GUESTS[Guest.ABSENT], task_state=None, phase=None,
            journaled_destination=None,
            records=(dataclasses.replace(_RECORD, status='error'),))),
    ('Nova says that the instance is on the destination',
     _facts(GUESTS[Guest.ABSENT], instance_host='destination')),
    ('Nova says so, and the guest is here',
     _facts(GUESTS[Guest.HERE], instance_host='destination')),
)


def _check():
    """The facts must be what the tables call them."""
    for guest, seen in GUESTS.items():
        if _facts(seen).guest is not guest:
            raise ValueError('%s is %s' % (guest, _facts(seen).guest))
    for job, seen in JOBS.items():
        if _facts(seen).job is not job:
            raise ValueError('%s is %s' % (job, _facts(seen).job))
    missing = (set(Guest) - set(GUESTS) - {Guest.INCOMING}) | (
        set(Job) - set(JOBS) - {Job.NONE, Job.UNNAMED})
    if missing:
        raise ValueError('not in the tables: %s' % missing)


def _table(header, rows):
    lines = ['.. list-table::', '   :header-rows: 1', '']
    for row in [header] + rows:
        lines.append('   * - ' + row[0])
        lines.extend('     - ' + cell for cell in row[1:])
    return lines + ['']


def by_job():
    rows = []
    for job, seen in JOBS.items():
        ruling = verdict.judge(_facts(seen))
        rows.append((job.value, ruling.verdict.name, ruling.reason))
    return _table(('libvirt', 'Verdict', 'Reason'), rows)


def by_place():
    peers = list(Peer)
    rows = [[guest.value] + [
        verdict.judge(_asked(seen, peer) if peer is not Peer.NOT_ASKED else
                      _facts(seen)).verdict.name for peer in peers]
            for guest, seen in GUESTS.items()]
    return _table(['No job runs, and'] + [peer.value for peer in peers], rows)


def by_case():
    rows = []
    for what, known in CASES:
        ruling = verdict.judge(known)
        rows.append((what, ruling.verdict.name, ruling.reason))
    return _table(('What is so', 'Verdict', 'Reason'), rows)


def by_word():
    peers = [peer for peer in Peer if peer is not Peer.NOT_ASKED]
    lines = []
    for keep in release.Keep:
        rows = [[guest.value] + [
            _of_word(_asked(seen, peer), keep) for peer in peers]
            for guest, seen in GUESTS.items()]
        lines += _table(['``--keep %s``, and' % keep.value] +
                        [peer.value for peer in peers], rows)
    return lines


def _of_word(known, keep):
    told = release.judge(known, keep, fenced=False, has_disk=True)
    if told.verdict is not verdict.Verdict.HOLD:
        return told.verdict.name
    fenced = release.judge(known, keep, fenced=True, has_disk=True)
    if fenced.verdict is not verdict.Verdict.HOLD:
        return '%s once it is set down' % fenced.verdict.name
    return 'refused'


def verdicts():
    return _table(('Verdict', 'What is done'), [
        (each.name, each.value) for each in verdict.Verdict])


def numbers():
    rows = [('``nova_migration_guard_%s``' % name, kind, what)
            for name, (kind, what) in metrics.METRICS.items()]
    return _table(('Name', 'Type', 'What it is'), rows)


class Metrics(rst.Directive):
    """``.. metrics::``, the numbers for Prometheus."""

    def run(self):
        self.state_machine.insert_input(numbers(), 'metrics.METRICS')
        return []


TABLES = {'verdicts': verdicts, 'jobs': by_job, 'places': by_place,
          'cases': by_case, 'words': by_word}


class Decisions(rst.Directive):
    """``.. decisions:: NAME``, one of :data:`TABLES`."""

    required_arguments = 1

    def run(self):
        _check()
        self.state_machine.insert_input(
            TABLES[self.arguments[0]](), 'verdict.judge')
        return []


def setup(app):
    """Called by Sphinx."""
    app.add_directive('decisions', Decisions)
    app.add_directive('metrics', Metrics)
    return {'parallel_read_safe': True}
