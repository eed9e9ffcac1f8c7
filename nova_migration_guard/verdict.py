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

"""From facts to a verdict: a pure function, and the one place with the rules.

No I/O, no clock, no option. The order of the questions below is the order in
which they matter: what libvirt runs comes before what Nova has written down,
since a job that runs is true and a record may be stale.
"""

import dataclasses
import enum
import typing

from nova_migration_guard import facts
from nova_migration_guard import libvirt_jobs


class Verdict(enum.Enum):
    """What is to be done about one instance."""
    LEAVE = 'leave it to Nova'
    ABORT = 'abort the migration job'
    ADOPT = 'see the migration through'
    ASK = 'ask the destination where the guest is'
    UNDO = 'undo what was prepared; libvirt was never asked to migrate'
    ROLL_BACK = 'roll the migration back; the instance stays here'
    FINISH = 'finish the migration; the instance is at its destination'
    CLOSE = 'end the migration; the destination has taken the instance over'
    END_BLOCK_JOBS = 'end the operations on its disks'
    HOLD = 'hold the instance'


#: Why a failed post-copy is held, and what libvirt (8.5 and newer) offers.
FAILED_POSTCOPY = (
    'the post-copy has failed and each host has a part of the guest: nothing '
    'is started or deleted; libvirt offers to recover it '
    '(VIR_MIGRATE_POSTCOPY_RESUME, virsh migrate --postcopy-resume)')


@dataclasses.dataclass(frozen=True)
class Ruling(object):
    """A verdict with its reason.

    :ivar reason: one sentence for the log
    :ivar refuse: whether Nova's API must refuse actions on the instance as
        long as it is held (rules R1 and R2)
    :ivar deletable: whether a held instance may be deleted all the same
    """
    verdict: Verdict
    reason: str
    refuse: bool = False
    deletable: bool = False


def judge(known):
    """Decide what is to be done about one instance.

    :param known: a :class:`nova_migration_guard.facts.Facts`
    :returns: a :class:`Ruling`
    """
    if known.moved:
        return _judge_moved(known)
    if known.job is facts.Job.UNKNOWN:
        return _judge_unknown(known)
    if known.job is facts.Job.OUTGOING_POSTCOPY:
        return _judge_postcopy(known)
    if known.job is facts.Job.OUTGOING:
        return _judge_outgoing(known)
    if known.job is facts.Job.INCOMING:
        return _hold('the guest is arriving here from another host')
    if known.migrating:
        return _judge_migration_without_job(known)
    if (known.guest is facts.Guest.ABSENT and known.left_last and
            known.vm_state in facts.EXPECTED_TO_RUN):
        return _judge_guest_that_left(known)
    return Ruling(Verdict.LEAVE, 'nothing is in flight')


def _hold(reason, refuse=True):
    return Ruling(Verdict.HOLD, reason, refuse)


def _judge_moved(known):
    if known.guest is facts.Guest.UNKNOWN:
        return _hold('%s (%s), and Nova says that it is on %s' % (
            known.guest.value, known.observation.trouble,
            known.instance_host), refuse=False)
    if known.guest in (facts.Guest.HERE, facts.Guest.INCOMING) or (
            known.job not in (facts.Job.NONE, facts.Job.UNKNOWN)):
        return _hold('%s, and Nova says that it is on %s' % (
            known.guest.value, known.instance_host), refuse=False)
    return Ruling(Verdict.CLOSE, 'the instance is on %s, and a migration '
                  'from here has not ended' % known.instance_host)


def _judge_unknown(known):
    reason = '%s (%s)' % (known.job.value, known.observation.trouble)
    # A domain that answers while its jobs do not has one: jobStats asks the
    # monitor only when there is something to ask. Where libvirt says nothing
    # at all, an idle instance gives no reason to lock its owner out.
    return _hold(reason, refuse=known.migrating or
                 known.guest is not facts.Guest.UNKNOWN)


def _judge_postcopy(known):
    reason = ('the migration is in post-copy: both hosts have a part of the '
              'guest, so it is never aborted')
    if known.postcopy_failed:
        return _hold(FAILED_POSTCOPY)
    if known.adoptable:
        return Ruling(Verdict.ADOPT, reason, refuse=True)
    return _hold(reason)


def _judge_outgoing(known):
    if not known.job_is_novas:
        return _hold('a migration job runs that Nova did not start')
    if known.adopts and known.adoptable:
        return Ruling(Verdict.ADOPT, 'a migration job runs that the journal '
                      'knows', refuse=True)
    if known.abort_could_freeze:
        return _hold('a migration job runs to %s, which does not answer: an '
                     'abort could halt the guest until it does' %
                     known.destination)
    return Ruling(Verdict.ABORT, 'a migration job runs that no nova-compute '
                  'controls', refuse=True)


def _judge_migration_without_job(known):
    guest = facts.Guest
    stays = known.guest in (guest.HERE, guest.OFF)
    if stays and known.only_requested:
        return Ruling(Verdict.LEAVE, 'a live migration is about to begin')
    if stays and known.before_libvirt:
        return Ruling(Verdict.UNDO, 'no job runs and %s' % known.guest.value)
    if known.destination is None:
        if stays:
            return Ruling(Verdict.UNDO, 'no job runs, %s, and nothing names a '
                          'destination' % known.guest.value)
        return _hold('no job runs, %s, and nothing names the destination' %
                     known.guest.value)
    if known.peer is facts.Peer.NOT_ASKED:
        return Ruling(Verdict.ASK, 'no job runs and %s' % known.guest.value,
                      refuse=True)
    where = 'no job runs, %s, and %s says: %s' % (
        known.guest.value, known.destination, known.peer.value)
    return _judge_both_sides(known, where)


def _judge_both_sides(known, where):
    """What the guest's place here and at the destination make of it."""
    guest, peer = facts.Guest, facts.Peer
    if known.peer is peer.UNKNOWN:
        return _hold('%s (%s)' % (where, known.peer_said))
    if known.peer is not peer.ABSENT and known.journaled_destination not in (
            None, known.destination):
        return _hold('%s; the journal names %s' % (
            where, known.journaled_destination))
    if known.peer_works:
        # what it does after it was settled would be left behind
        return _hold('%s; it still works for the migration' % where)
    if known.guest is guest.SPLIT and known.postcopy_failed:
        return _hold('%s; %s' % (where, FAILED_POSTCOPY))
    if known.guest is guest.HERE:
        if known.peer is peer.RUNS:
            return _hold(where + '; nothing is started or deleted')
        if known.peer is peer.THERE:
            # it goes by itself once its libvirtd has noticed
            return _hold(where)
        return Ruling(Verdict.ROLL_BACK, where)
    if known.peer is peer.ABSENT:
        if known.guest in (guest.OFF, guest.STOPPED, guest.SUSPENDED):
            return Ruling(Verdict.ROLL_BACK, where)
        return _hold(where + '; nothing is started or deleted')
    if known.guest in (guest.UNKNOWN, guest.INCOMING, guest.SPLIT):
        return _hold(where)
    if known.peer is peer.THERE and known.vm_state != facts.PAUSED:
        return _hold(where)
    return Ruling(Verdict.FINISH, where)


def _judge_guest_that_left(known):
    """Nova's records say that nothing is in flight, and no guest is here."""
    reason = ('the guest is not here, and its last live migration left this '
              'host for %s' % known.destination)
    if known.destination is None:
        return _hold(reason)
    if known.peer is facts.Peer.NOT_ASKED:
        return Ruling(Verdict.ASK, reason, refuse=True)
    if known.peer is facts.Peer.ABSENT:
        return Ruling(Verdict.LEAVE, reason + ', where it is not either')
    return _judge_both_sides(known, '%s, which says: %s' % (
        reason, known.peer.value))


def not_novas(seen, is_instance, foreign_jobs):
    """Name the jobs that the guard leaves alone and reports (rule R9).

    :param seen: a :class:`nova_migration_guard.libvirt_jobs.Observation`
    :param is_instance: whether the domain is an instance of this host
    :param foreign_jobs: its block jobs that another tool started
    :returns: a list of descriptions for the log
    """
    job = seen.job
    found: typing.List[str] = []
    if job is None:
        return found
    operations = libvirt_jobs.Operation
    if not job.active:
        found.extend(
            'a block job of type %s on disk %s' % (
                getattr(block_job.type, 'name', block_job.type),
                block_job.disk) for block_job in foreign_jobs)
    elif job.operation != operations.MIGRATION_IN and not (
            is_instance and job.operation in (
                operations.MIGRATION_OUT, operations.UNKNOWN)):
        found.append('a job of operation %s' % getattr(
            job.operation, 'name', job.operation))
    whose = '' if is_instance else (
        ', of a guest that is no instance of this host')
    return [description + whose for description in found]
