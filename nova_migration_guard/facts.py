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

"""What is known of one instance, in the terms that a verdict needs.

Facts are plain values. They come from the instance's record, its migration
records and what libvirt says, and whatever could not be found out is there as
"unknown", never left out.
"""

import dataclasses
import enum
import typing

from nova_migration_guard import journal
from nova_migration_guard import libvirt_jobs

MIGRATING = 'migrating'
ACTIVE = 'active'
PAUSED = 'paused'
ERROR = 'error'

# The vm_states in which Nova expects a guest to have a domain that runs.
EXPECTED_TO_RUN = (ACTIVE, PAUSED)

# The task states in which Nova makes an image of an instance. When it starts
# it clears all but the last. In "image_snapshot_pending" the request may still
# wait in a queue.
IMAGE_SNAPSHOT = 'image_snapshot'
SNAPSHOT_STATES = (IMAGE_SNAPSHOT, 'image_pending_upload', 'image_uploading',
                   'image_backup')

# The type of a live migration's record, and statuses that it ends with.
LIVE_MIGRATION = 'live-migration'
CANCELLED = 'cancelled'
COMPLETED = 'completed'

# Statuses of a live migration's record that say it has not ended.
POSTCOPY = 'running (post-copy)'
OPEN_STATUSES = ('accepted', 'queued', 'preparing', 'running', POSTCOPY)

# Those that a record has until ComputeManager._do_live_migration begins.
BEFORE_LIBVIRT = ('accepted', 'queued')

# The record and the job are timed by different hosts' clocks.
CLOCK_SKEW = 60


class Guest(enum.Enum):
    """Where this host's libvirt sees the guest."""
    HERE = 'the guest is here'
    OFF = 'the guest was shut off here'
    STOPPED = 'the guest is off here, libvirt does not say why'
    SUSPENDED = 'the guest is halted here by its migration'
    SPLIT = 'the guest is halted here in post-copy'
    INCOMING = 'the guest is arriving here'
    ABSENT = 'the guest is not here'
    UNKNOWN = 'libvirt does not say where the guest is'


class Job(enum.Enum):
    """What this host's libvirt runs for the guest."""
    NONE = 'no job'
    OUTGOING = 'a migration job runs'
    OUTGOING_POSTCOPY = 'a migration job runs in post-copy'
    INCOMING = 'an incoming migration job runs'
    OTHER = 'a job that is no migration runs'
    UNNAMED = 'a job runs, libvirt does not say which'
    UNKNOWN = 'libvirt does not say whether a job runs'


class Peer(enum.Enum):
    """What the other host of the migration says. UNKNOWN is never a no."""
    NOT_ASKED = 'the other host was not asked'
    RUNS = 'the guest runs there'
    THERE = 'its domain is there and does not run'
    OFF = 'the guest is there, shut off'
    ABSENT = 'the guest is not there'
    UNKNOWN = 'the other host does not say whether the guest is there'


@dataclasses.dataclass(frozen=True)
class Record(object):
    """A live migration's record.

    :ivar changed: POSIX time of its last change, or None
    :ivar uuid: the record's UUID, which the journal names, or None
    """
    id: int
    status: str
    source: str
    destination: typing.Optional[str] = None
    changed: typing.Optional[float] = None
    uuid: typing.Optional[str] = None

    @property
    def open(self):
        return self.status in OPEN_STATUSES

    @property
    def before_libvirt(self):
        """Whether the migration has not got to this host's driver."""
        return self.status in BEFORE_LIBVIRT


@dataclasses.dataclass(frozen=True)
class Facts(object):
    """What is known of one instance that is, or was, on this host.

    :ivar host: this host's name, as records have it
    :ivar instance_host: the host that the instance's record names
    :ivar records: its live migrations' records, oldest first; the open ones
        that leave this host at the least
    :ivar observed_at: POSIX time of the observation
    :ivar phase: the phase of the journal's entry, or None without one
    :ivar journaled_destination: the destination of the journal's entry
    :ivar journaled_migration: the UUID of the record that the journal's entry
        is about
    :ivar adopts: whether the operator wants a migration that copies to be
        seen through
    :ivar peer: what the destination says, a :class:`Peer`
    :ivar peer_said: over what it was asked, or why it does not say
    :ivar peer_works: whether the destination has not ended what an earlier
        nova-compute here has asked it to do for the migration
    :ivar asked: which host ``peer`` is about, or None before one was asked
    :ivar reachable: whether the destination answers on the network; None
        when that was not tried
    :ivar requested: the IDs of the records that are younger than this
        nova-compute, which begins those migrations itself
    """
    host: str
    vm_state: str
    task_state: typing.Optional[str]
    records: typing.Tuple[Record, ...]
    observation: libvirt_jobs.Observation
    observed_at: float = 0.0
    instance_host: typing.Optional[str] = None
    phase: typing.Optional[str] = None
    journaled_destination: typing.Optional[str] = None
    journaled_migration: typing.Optional[str] = None
    adopts: bool = False
    peer: Peer = Peer.NOT_ASKED
    peer_said: str = ''
    peer_works: bool = False
    asked: typing.Optional[str] = None
    reachable: typing.Optional[bool] = None
    requested: typing.FrozenSet[int] = frozenset()

    @property
    def guest(self):
        return guest_of(self.observation)

    @property
    def job(self):
        job = job_of(self.observation)
        if job is Job.UNNAMED:
            # libvirt before 3.3 does not name a job's operation
            return Job.OUTGOING if self.migrating else Job.OTHER
        return job

    @property
    def open_records(self):
        return tuple(record for record in self.records
                     if record.open and record.source == self.host)

    @property
    def migrating(self):
        """Whether something says that a migration from here has not ended."""
        return (self.task_state == MIGRATING or bool(self.open_records) or
                self.phase is not None)

    @property
    def only_requested(self):
        """Whether all there is is a request that is on its way to this host.

        The API takes one as soon as a settlement has made the instance idle,
        which can be before the guard has learned that it was settled.
        """
        return (self.phase is None and bool(self.open_records) and all(
            record.before_libvirt and record.id in self.requested
            for record in self.open_records))

    @property
    def moved(self):
        """Whether Nova says already that the instance is elsewhere."""
        return self.instance_host not in (None, self.host)

    @property
    def before_libvirt(self):
        """Whether no host was asked to do anything yet.

        Where no record and no entry is left, only the task state is. An
        entry whose record has ended does not say how far it had got.
        """
        if self.phase not in (None, journal.PREPARING):
            return False
        if self.phase is not None and not self.open_records:
            return False
        return all(record.before_libvirt for record in self.open_records)

    @property
    def destination(self):
        """The other host of the migration, or None when nothing names it."""
        if self.asked:
            return self.asked
        if self.journaled_destination:
            return self.journaled_destination
        named = [record for record in self.open_records if record.destination]
        named = [record for record in named
                 if not record.before_libvirt] or named
        if not named and self.left_last:
            named = [self.records[-1]]
        return named[-1].destination if named else None

    @property
    def destinations(self):
        """Every host that the guest may be on, the most likely one last.

        That is more than one where the instance has more than one open
        record.
        """
        others = {record.destination for record in self.open_records
                  if record.destination and not record.before_libvirt}
        return sorted(others - {self.destination}) + [self.destination]

    @property
    def needs_all_records(self):
        """Whether the verdict depends on records that are not open."""
        if self.open_records or self.phase is not None:
            return False
        return self.job is Job.OUTGOING or (
            self.guest in (Guest.ABSENT, Guest.STOPPED, Guest.SUSPENDED) and
            (self.migrating or self.vm_state in EXPECTED_TO_RUN))

    @property
    def abort_could_freeze(self):
        """Whether an abort could halt the guest until the network is back.

        QEMU waits for the other side to take note: always when it copies
        memory, and when it copies disks for a write that is under way. Its
        main loop stands still meanwhile (libvirt 9.0, QEMU 7.2).
        """
        return self.job is Job.OUTGOING and self.reachable is False

    @property
    def adoptable(self):
        """Whether the journal has what it takes to see the job through.

        Its entry must be that of the one migration that is open, and nothing
        else may have begun with the instance. A job that ends already, as
        one that was aborted, is seen gone instead.
        """
        job = self.observation.job
        return (self.phase in (journal.PREPARED, journal.STARTED) and
                self.task_state in (None, MIGRATING) and
                job is not None and job.type in (
                    libvirt_jobs.JobType.BOUNDED,
                    libvirt_jobs.JobType.UNBOUNDED) and
                [(record.uuid, record.destination)
                 for record in self.open_records] ==
                [(self.journaled_migration, self.journaled_destination)])

    @property
    def postcopy_failed(self):
        """Whether libvirt says that the guest's post-copy has failed."""
        return (self.observation.state == libvirt_jobs.State.PAUSED and
                self.observation.reason ==
                libvirt_jobs.PausedReason.POSTCOPY_FAILED)

    @property
    def left_last(self):
        """Whether its last live migration, however it ended, left here."""
        return bool(self.records) and self.records[-1].source == self.host

    @property
    def job_is_novas(self):
        """Whether Nova started the migration job that runs.

        A record of any status can be the job's, since Nova may have ended
        the record and not the job. A record that had ended before the job
        began is not. The task state tells nothing: the guard itself sets it
        on an instance that it holds.
        """
        return bool(self.open_records) or self.phase is not None or any(
            self._may_be_of_job(record) for record in self.records)

    def _may_be_of_job(self, record):
        if record.source != self.host or record.status == COMPLETED:
            return False
        job = self.observation.job
        elapsed = job.elapsed if job else None
        if elapsed is None or record.changed is None:
            return True
        return record.changed + CLOCK_SKEW >= self.observed_at - elapsed


def guest_of(seen):
    """Where libvirt sees the guest.

    :param seen: a :class:`nova_migration_guard.libvirt_jobs.Observation`
    :returns: a :class:`Guest`
    """
    states = libvirt_jobs.State
    if seen.present is None:
        return Guest.UNKNOWN
    if not seen.present:
        return Guest.ABSENT
    if seen.state in (states.SHUTOFF, states.CRASHED):
        if seen.reason == libvirt_jobs.ShutoffReason.MIGRATED:
            return Guest.ABSENT
        if seen.reason in tuple(libvirt_jobs.ShutoffReason):
            return Guest.OFF
        # after a restart of the host, for example
        return Guest.STOPPED
    if seen.state == states.PAUSED:
        job = seen.job
        if job is not None and job.active and (
                job.operation == libvirt_jobs.Operation.MIGRATION_IN):
            return Guest.INCOMING
        if seen.reason == libvirt_jobs.PausedReason.MIGRATION:
            return Guest.SUSPENDED
        if seen.reason in tuple(libvirt_jobs.PausedReason):
            return Guest.SPLIT
        return Guest.HERE
    if seen.state in (states.RUNNING, states.BLOCKED, states.PMSUSPENDED,
                      states.SHUTDOWN):
        return Guest.HERE
    return Guest.UNKNOWN


def job_of(seen):
    """What libvirt runs for the guest.

    :param seen: a :class:`nova_migration_guard.libvirt_jobs.Observation`
    :returns: a :class:`Job`
    """
    operations = libvirt_jobs.Operation
    if seen.job is None:
        return Job.UNKNOWN
    if not seen.job.active:
        return Job.NONE
    if seen.job.operation == operations.MIGRATION_IN:
        return Job.INCOMING
    if seen.job.operation == operations.MIGRATION_OUT:
        if (seen.state == libvirt_jobs.State.PAUSED and seen.reason in (
                libvirt_jobs.PausedReason.POSTCOPY,
                libvirt_jobs.PausedReason.POSTCOPY_FAILED)):
            return Job.OUTGOING_POSTCOPY
        return Job.OUTGOING
    if seen.job.operation == operations.UNKNOWN:
        return Job.UNNAMED
    return Job.OTHER
