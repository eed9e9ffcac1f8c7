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

"""What is to be done about block jobs that no nova-compute controls.

No I/O, no clock, no option. A live snapshot, a volume swap and an assisted
volume snapshot copy or merge a disk in QEMU. What became of one shows in the
images that the disk is made of: a copy is never used before nova-compute asks
for that.
"""

import dataclasses
import enum
import os
import typing

from nova_migration_guard import facts
from nova_migration_guard import journal
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import verdict

# The states of a guest that runs, or would go on to.
_RUNS = (libvirt_jobs.State.RUNNING, libvirt_jobs.State.BLOCKED,
         libvirt_jobs.State.PAUSED, libvirt_jobs.State.PMSUSPENDED)

# The block jobs that each operation of Nova starts. libvirt takes a volume's
# snapshot without one.
_JOBS = {
    journal.LIVE_SNAPSHOT: (libvirt_jobs.BlockJobType.COPY,),
    journal.VOLUME_SWAP: (libvirt_jobs.BlockJobType.COPY,),
    journal.VOLUME_SNAPSHOT_CREATE: (),
    journal.VOLUME_SNAPSHOT_DELETE: (
        libvirt_jobs.BlockJobType.PULL, libvirt_jobs.BlockJobType.COMMIT,
        libvirt_jobs.BlockJobType.ACTIVE_COMMIT)}


class Outcome(enum.Enum):
    """What became of an interrupted operation on a disk."""
    DONE = 'it was done'
    NOT_DONE = 'it was not done'
    UNKNOWN = 'it is not known whether it was done'


@dataclasses.dataclass(frozen=True)
class Known(object):
    """What is known of one instance's block operations.

    :ivar task_state: the instance's
    :ivar observation: what libvirt said of it
    :ivar entries: the journal's
        :class:`nova_migration_guard.journal.BlockOperation`
    :ivar snapshot_folder: Nova's folder for images of live snapshots
    :ivar starting: whether nova-compute starts, so that a task state is one
        that an earlier process has left
    """
    task_state: typing.Optional[str]
    observation: libvirt_jobs.Observation
    entries: typing.Tuple[journal.BlockOperation, ...] = ()
    snapshot_folder: str = ''
    starting: bool = False

    @property
    def snapshots(self):
        """Whether an image of it was being made when nova-compute died."""
        return self.starting and self.task_state in facts.SNAPSHOT_STATES

    @property
    def runs(self):
        """Whether its guest runs, paused or not."""
        return self.observation.state in _RUNS

    @property
    def transient(self):
        """Whether its guest runs and would be forgotten when it stops.

        Nova defines every domain. One that arrives by a migration is
        transient until it has arrived.
        """
        seen = self.observation
        return (seen.persistent is False and seen.job is not None and
                not seen.job.active and self.runs)

    @property
    def vanished(self):
        """Whether its guest has stopped while its domain was transient."""
        return self.observation.present is False and any(
            entry.domain_xml for entry in self.entries)

    def is_novas(self, job):
        """Tell whether Nova started a block job.

        :param job: a :class:`nova_migration_guard.libvirt_jobs.BlockJob`
        """
        if any(entry.disk == job.disk and job.type in _JOBS[entry.operation]
               for entry in self.entries):
            return True
        # the task state says nothing about a disk that no entry names
        return job.type == libvirt_jobs.BlockJobType.COPY and (
            (self.snapshots and not self.entries) or
            self.is_snapshot(job.target))

    def is_snapshot(self, path):
        """Tell whether a file is an image of one of Nova's live snapshots.

        :param path: of the file, or None
        """
        return bool(path and self.snapshot_folder) and os.path.realpath(
            path).startswith(os.path.realpath(self.snapshot_folder) + os.sep)

    @property
    def novas_jobs(self):
        return tuple(job for job in self.observation.block_jobs or ()
                     if self.is_novas(job))

    @property
    def foreign_jobs(self):
        return tuple(job for job in self.observation.block_jobs or ()
                     if not self.is_novas(job))


def judge(known, abort_foreign=False):
    """Decide what is to be done about an instance's block operations.

    It has no migration in flight.

    :param known: a :class:`Known`
    :param abort_foreign: whether another tool's jobs are aborted as well
    :returns: a :class:`nova_migration_guard.verdict.Ruling`: LEAVE,
        END_BLOCK_JOBS or HOLD
    """
    if known.observation.block_jobs is None:
        # they are asked for over the monitor only where there is one
        return hold('libvirt does not say which block jobs run (%s)' %
                    known.observation.trouble)
    jobs = known.observation.block_jobs if abort_foreign else known.novas_jobs
    reasons = ['a block job of type %s runs on disk %s' % (
        getattr(job.type, 'name', job.type), job.disk) for job in jobs]
    reasons.extend('%s of %s has not ended' % (entry.operation, entry.subject)
                   for entry in known.entries)
    if known.transient and not known.foreign_jobs:
        reasons.append('the domain would be forgotten when its guest stops')
    if known.snapshots and not known.entries:
        reasons.append('an image of it was being made')
    if not reasons:
        return verdict.Ruling(verdict.Verdict.LEAVE, 'nothing is in flight')
    return verdict.Ruling(
        verdict.Verdict.END_BLOCK_JOBS, ', '.join(reasons),
        refuse=bool(jobs or known.entries))


def hold(reason):
    """Hold an instance for its block operations.

    :param reason: one sentence
    """
    return verdict.Ruling(verdict.Verdict.HOLD, reason, refuse=True,
                          deletable=True)


def not_known(why, entry):
    """Hold an instance whose volumes' contents are not certain.

    :param why: why that cannot be found out
    :param entry: the :class:`nova_migration_guard.journal.BlockOperation` of
        a swap whose copy may have been used
    """
    return hold('%s, and whether it used volume %s or %s last is not known; '
                'nothing is deleted' % (why, entry.subject,
                                        entry.details['new_volume']))


def outcome(entry, disks, runs):
    """Tell what became of an operation whose block job is gone.

    :param entry: a :class:`nova_migration_guard.journal.BlockOperation`
    :param disks: the :class:`nova_migration_guard.domain_xml.Disk` that the
        guest has
    :param runs: whether the guest runs. Of one that does not, libvirt tells
        only the images that it would write to.
    :returns: an :class:`Outcome`
    """
    if entry.operation == journal.LIVE_SNAPSHOT:
        # only Nova itself uses the copy, and it has no record of it
        return Outcome.NOT_DONE
    if entry.phase in (journal.BEGUN, journal.CONNECTING):
        return Outcome.NOT_DONE
    disk = next((disk for disk in disks if disk.dev == entry.disk), None)
    if disk is None:
        return Outcome.UNKNOWN
    return _OUTCOMES[entry.operation](entry, disk, runs)


def _swapped(entry, disk, runs):
    if entry.target == entry.details['source']:
        # neither name tells which of the volumes is used
        return Outcome.UNKNOWN
    if disk.source == entry.target:
        return Outcome.DONE
    if disk.source == entry.details['source']:
        return Outcome.NOT_DONE
    return Outcome.UNKNOWN


def _snapshot_created(entry, disk, runs):
    return Outcome.DONE if disk.has(entry.target) else Outcome.NOT_DONE


def _snapshot_deleted(entry, disk, runs):
    if not runs:
        # Cinder deletes a file that was merged. One that was, and is said
        # not to be, it keeps.
        return Outcome.NOT_DONE
    merged, target = entry.details['merged'], entry.details['merge_target']
    if target is not None:
        return Outcome.NOT_DONE if disk.has(merged) else Outcome.DONE
    # what is above the base was pulled into the image that is written to
    rest = disk.chain[1:2]
    base = (merged,) if merged else ()
    return (Outcome.DONE if tuple(map(os.path.basename, rest)) ==
            tuple(map(os.path.basename, base)) else Outcome.NOT_DONE)


_OUTCOMES = {
    journal.VOLUME_SWAP: _swapped,
    journal.VOLUME_SNAPSHOT_CREATE: _snapshot_created,
    journal.VOLUME_SNAPSHOT_DELETE: _snapshot_deleted}
