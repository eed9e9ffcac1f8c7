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

"""What libvirt says of one domain, as plain values.

The numbers are those that libvirt documents.

A domain job (``virDomainGetJobStats``) is a migration, a backup, a save and
the like, at most one a domain. A block job (``virDomainGetBlockJobInfo``)
belongs to a disk. Both outlive the client that started them.
"""

import dataclasses
import enum
import typing

from nova_migration_guard import domain_xml


class State(enum.IntEnum):
    """virDomainState"""
    NOSTATE = 0
    RUNNING = 1
    BLOCKED = 2
    PAUSED = 3
    SHUTDOWN = 4
    SHUTOFF = 5
    CRASHED = 6
    PMSUSPENDED = 7


class PausedReason(enum.IntEnum):
    """The virDomainPausedReason values that matter in a migration."""
    MIGRATION = 2
    POSTCOPY = 12
    POSTCOPY_FAILED = 13


class ShutoffReason(enum.IntEnum):
    """The virDomainShutoffReason values that say what became of the guest."""
    SHUTDOWN = 1
    DESTROYED = 2
    CRASHED = 3
    MIGRATED = 4


class JobType(enum.IntEnum):
    """virDomainJobType"""
    NONE = 0
    BOUNDED = 1
    UNBOUNDED = 2
    COMPLETED = 3
    FAILED = 4
    CANCELLED = 5


class Operation(enum.IntEnum):
    """virDomainJobOperation (libvirt 3.3)"""
    UNKNOWN = 0
    START = 1
    SAVE = 2
    RESTORE = 3
    MIGRATION_IN = 4
    MIGRATION_OUT = 5
    SNAPSHOT = 6
    SNAPSHOT_REVERT = 7
    DUMP = 8
    BACKUP = 9
    SNAPSHOT_DELETE = 10


class BlockJobType(enum.IntEnum):
    """virDomainBlockJobType"""
    UNKNOWN = 0
    PULL = 1
    COPY = 2
    COMMIT = 3
    ACTIVE_COMMIT = 4
    BACKUP = 5


def member(enumeration, number):
    """A newer libvirt's value is kept as the number that it is."""
    try:
        return enumeration(number)
    except ValueError:
        return number


@dataclasses.dataclass(frozen=True)
class DomainJob(object):
    """The domain job of one domain.

    :ivar type: a :class:`JobType`
    :ivar operation: an :class:`Operation`; UNKNOWN where libvirt does not
        tell
    :ivar elapsed: seconds since the job began, or None
    :ivar copies_memory: whether it has begun to. A migration's disks come
        first, and QEMU counts no memory until they are in step.
    :ivar progress: how much of its data is done, from 0 to 1, or None
    """
    type: int = JobType.NONE
    operation: int = Operation.UNKNOWN
    elapsed: typing.Optional[float] = None
    copies_memory: bool = dataclasses.field(default=False, compare=False)
    progress: typing.Optional[float] = dataclasses.field(
        default=None, compare=False)

    @property
    def active(self):
        """Whether there is a job.

        A job that ends is still there: one that was aborted while its
        destination does not answer stays CANCELLED for minutes, and only
        then is decided where the guest goes on.
        """
        return self.type != JobType.NONE


@dataclasses.dataclass(frozen=True)
class BlockJob(object):
    """A running block job.

    :ivar disk: the target name, for example vda
    :ivar type: a :class:`BlockJobType`
    :ivar target: what a copy or an active commit writes to, if it does
    :ivar progress: how much of its data is done, from 0 to 1, or None
    """
    disk: str
    type: int
    target: typing.Optional[str] = None
    progress: typing.Optional[float] = dataclasses.field(
        default=None, compare=False)


def part(done, total):
    return min(done / total, 1.0) if done is not None and total else None


@dataclasses.dataclass(frozen=True)
class Observation(object):
    """What libvirt said of one domain. None stands for "it did not say".

    :ivar present: whether the domain is defined or running here
    :ivar state: a :class:`State`
    :ivar reason: the number that goes with the state
    :ivar persistent: whether it stays defined when it stops
    :ivar job: a :class:`DomainJob`
    :ivar block_jobs: a tuple of :class:`BlockJob`
    :ivar disks: a tuple of :class:`nova_migration_guard.domain_xml.Disk`
    :ivar trouble: why something is None
    """
    present: typing.Optional[bool] = None
    state: typing.Optional[int] = None
    reason: typing.Optional[int] = None
    persistent: typing.Optional[bool] = None
    job: typing.Optional[DomainJob] = None
    block_jobs: typing.Optional[typing.Tuple[BlockJob, ...]] = None
    disks: typing.Optional[typing.Tuple[domain_xml.Disk, ...]] = None
    trouble: str = ''


ABSENT = Observation(present=False, job=DomainJob(), block_jobs=(), disks=())
