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

from nova_migration_guard import libvirt_jobs

MIGRATING = 'migrating'
PAUSED = 'paused'

# The vm_states in which Nova expects a guest to have a domain that runs.
EXPECTED_TO_RUN = ('active', PAUSED)

# Statuses of a live migration's record that say it has not ended.
OPEN_STATUSES = ('accepted', 'queued', 'preparing', 'running',
                 'running (post-copy)')

# The record and the job are timed by different hosts' clocks.
CLOCK_SKEW = 60


class Guest(enum.Enum):
    """Where this host's libvirt sees the guest."""
    HERE = 'the guest is here'
    OFF = 'the guest was shut off here'
    STOPPED = 'the guest is off here, libvirt does not say why'
    SUSPENDED = 'the guest is halted here by its migration'
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


@dataclasses.dataclass(frozen=True)
class Record(object):
    """A live migration's record.

    :ivar changed: POSIX time of its last change, or None
    """
    id: int
    status: str
    source: str
    destination: typing.Optional[str] = None
    changed: typing.Optional[float] = None

    @property
    def open(self):
        return self.status in OPEN_STATUSES


@dataclasses.dataclass(frozen=True)
class Facts(object):
    """What is known of one instance of this host.

    :ivar host: this host's name, as records have it
    :ivar records: its live migrations' records, oldest first; the open ones
        that leave this host at the least
    :ivar observed_at: POSIX time of the observation
    """
    host: str
    vm_state: str
    task_state: typing.Optional[str]
    records: typing.Tuple[Record, ...]
    observation: libvirt_jobs.Observation
    observed_at: float = 0.0

    @property
    def guest(self):
        return _guest(self.observation)

    @property
    def job(self):
        job = _job(self.observation)
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
        """Whether Nova's records say that the instance leaves this host."""
        return self.task_state == MIGRATING or bool(self.open_records)

    @property
    def needs_all_records(self):
        """Whether the verdict depends on records that are not open."""
        if self.open_records:
            return False
        return self.job is Job.OUTGOING or (
            not self.migrating and self.guest is Guest.ABSENT and
            self.vm_state in EXPECTED_TO_RUN)

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
        return bool(self.open_records) or any(
            self._may_be_of_job(record) for record in self.records)

    def _may_be_of_job(self, record):
        if record.source != self.host or record.status == 'completed':
            return False
        job = self.observation.job
        elapsed = job.elapsed if job else None
        if elapsed is None or record.changed is None:
            return True
        return record.changed + CLOCK_SKEW >= self.observed_at - elapsed


def _guest(seen):
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
        if seen.reason in tuple(libvirt_jobs.PausedReason):
            return Guest.SUSPENDED
        return Guest.HERE
    if seen.state in (states.RUNNING, states.BLOCKED, states.PMSUSPENDED,
                      states.SHUTDOWN):
        return Guest.HERE
    return Guest.UNKNOWN


def _job(seen):
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
