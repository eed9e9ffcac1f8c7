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

"""What libvirt is doing with a domain, and how to stop it.

Knows libvirt's API and nothing of Nova. The connection and the class of
libvirt's errors are handed in, and the constants are libvirt's documented
numbers, so that the module needs no particular binding at import.

A domain job (``virDomainGetJobStats``) is a migration, a backup, a save and
the like, at most one a domain. A block job (``virDomainGetBlockJobInfo``)
belongs to a disk. Both outlive the client that started them. No bulk call of
libvirt shows either.
"""

import dataclasses
import enum
import time
import typing

from oslo_log import log as logging

from nova_migration_guard import domain_xml

LOG = logging.getLogger(__name__)

# virErrorNumber
NO_DOMAIN = 42
OPERATION_INVALID = 55
# "migration statistics are available only on the source host": what jobStats
# says of the incoming side of a migration
OPERATION_UNSUPPORTED = 84

# virDomainXMLFlags
XML_SECURE = 1
XML_INACTIVE = 2

# virDomainBlockJobAbortFlags, virDomainBlockResizeFlags
ABORT_ASYNC = 1
RESIZE_BYTES = 1

# How often a job that was aborted is looked at until it is gone, in seconds.
# A cancelled mirror takes 0.07 to 0.24 s to go away.
POLL_INTERVAL = 0.1


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


def _member(enumeration, number):
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


def _part(done, total):
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


class _Look(object):
    """Asks one domain, and keeps what it has learned if the next call hangs.

    The questions that cannot hang come first: ``state`` and the XML answer
    even while the monitor hangs, jobStats and blockJobInfo may not.
    """

    def __init__(self, connections, error, uuid):
        self._connections = connections
        self._error = error
        self._uuid = uuid
        self._seen = Observation()

    def seen(self, trouble=''):
        return dataclasses.replace(self._seen, trouble=trouble)

    def _learn(self, **facts):
        self._seen = dataclasses.replace(self._seen, **facts)

    def ask(self):
        """Ask everything; what was learned is in :meth:`seen`.

        :raises: libvirt's error
        """
        with self._connections.lend() as connection:
            try:
                self._ask(connection.lookupByUUIDString(self._uuid))
            except self._error as e:
                if e.get_error_code() != NO_DOMAIN:
                    raise
                self._seen = ABSENT

    def _ask(self, domain):
        self._learn_state(domain)
        disks = domain_xml.disks(domain.XMLDesc(0))
        self._learn(disks=disks)
        if self._seen.state in (State.SHUTOFF, State.CRASHED, State.NOSTATE):
            self._learn(job=DomainJob(), block_jobs=())
            return
        job = self._job(domain)
        # A migration that ended since the first look has taken the guest
        # away: the state that goes with "no job" is the one after it.
        self._learn_state(domain)
        self._learn(job=job)
        if job.active and job.operation == Operation.MIGRATION_IN:
            # every question to an incoming domain's blocks waits for 30 s
            self._learn(block_jobs=())
            return
        block_jobs = tuple(self._block_jobs(domain, disks))
        # A job that ended since the first look may have changed the chain:
        # the disks that go with "no job" are those after it.
        self._learn(disks=domain_xml.disks(domain.XMLDesc(0)))
        self._learn(block_jobs=block_jobs)

    def _learn_state(self, domain):
        state, reason = domain.state(0)[:2]
        self._learn(present=True, state=_member(State, state), reason=reason,
                    persistent=bool(domain.isPersistent()))

    def _job(self, domain):
        try:
            stats = domain.jobStats(0)
        except self._error as e:
            if e.get_error_code() == OPERATION_UNSUPPORTED:
                return DomainJob(JobType.UNBOUNDED, Operation.MIGRATION_IN)
            if (e.get_error_code() == OPERATION_INVALID and
                    not domain.isActive()):
                return DomainJob()
            raise
        elapsed = stats.get('time_elapsed')
        return DomainJob(
            _member(JobType, stats['type']),
            _member(Operation, stats.get('operation', Operation.UNKNOWN)),
            None if elapsed is None else elapsed / 1000.0,
            bool(stats.get('memory_processed')),
            _part(stats.get('data_processed'), stats.get('data_total')))

    @staticmethod
    def _block_jobs(domain, disks):
        for disk in disks:
            # {} or None: no job (a fact about now, not a success)
            info = domain.blockJobInfo(disk.dev, 0)
            if info and info.get('type'):
                yield BlockJob(disk.dev, _member(BlockJobType, info['type']),
                               disk.mirror,
                               _part(info.get('cur'), info.get('end')))


class LibvirtJobs(object):
    """The jobs of one host's domains.

    :param connections: the
        :class:`~nova_migration_guard.connections.Connections` to ask over
    :param error: the class of libvirt's errors
    :param asks: the :class:`~nova_migration_guard.workers.Workers` in which
        the calls to libvirt run
    """

    def __init__(self, connections, error, asks):
        self._connections = connections
        self._error = error
        self._asks = asks

    def domains(self, timeout):
        """List the UUIDs of all domains, running and defined.

        :param timeout: seconds
        :raises nova_migration_guard.workers.CallTimeout: when there is no
            answer by then
        :raises Exception: what the connection or libvirt raises
        """
        def listing():
            with self._connections.lend() as connection:
                return [domain.UUIDString() for domain in
                        connection.listAllDomains(0)]
        return self._asks.call('listing', timeout, listing)

    def observe(self, uuid, timeout):
        """Find out what libvirt does with one domain. Raises nothing.

        :param uuid: the domain's UUID
        :param timeout: seconds
        :returns: an :class:`Observation`
        """
        return self.observe_each([uuid], timeout, timeout)[uuid]

    def observe_each(self, uuids, timeout, budget):
        """Find out what libvirt does with many domains, side by side.

        :param uuids: the domains' UUIDs
        :param timeout: seconds for one domain
        :param budget: seconds for all of them together
        :returns: {uuid: :class:`Observation`} with every UUID
        """
        looks = {uuid: _Look(self._connections, self._error, uuid)
                 for uuid in uuids}
        _, errors = self._asks.call_each(
            looks, timeout, budget, lambda uuid: looks[uuid].ask())
        return {uuid: look.seen(str(errors.get(uuid, '')))
                for uuid, look in looks.items()}

    def abort(self, uuid, timeout):
        """Abort the domain job of a domain, and see it gone.

        What abortJob returns or raises is logged and otherwise ignored: 0
        does not mean that the job ends, and an error does not mean that it
        goes on. Only what libvirt says afterwards counts.

        :param uuid: the domain's UUID
        :param timeout: seconds until the job must be gone
        :returns: the last :class:`Observation`, whose ``job`` tells
        """
        deadline = time.monotonic() + timeout

        try:
            self._call(uuid, timeout, 'abortJob')
        except Exception as e:
            LOG.info('abortJob for domain %s: %s', uuid, e)
        return self._until(uuid, deadline, lambda seen: (
            seen.job is not None and not seen.job.active))

    def abort_block_jobs(self, uuid, jobs, timeout):
        """Abort block jobs of a domain without pivot, and see them gone.

        What the calls return or raise is logged and otherwise ignored: only
        what libvirt says afterwards counts.

        :param uuid: the domain's UUID
        :param jobs: the :class:`BlockJob` to abort, of disks that have one
        :param timeout: seconds until all of them must be gone
        :returns: the last :class:`Observation`, whose ``block_jobs`` tells
        """
        deadline = time.monotonic() + timeout
        disks = {job.disk for job in jobs}
        for job in jobs:
            try:
                # a backup is a domain job as well, and ends only as such
                call = (('abortJob',) if job.type == BlockJobType.BACKUP else
                        ('blockJobAbort', job.disk, ABORT_ASYNC))
                self._call(uuid, deadline - time.monotonic(), *call)
            except Exception as e:
                LOG.info('Abort of the block job on disk %s of domain %s: %s',
                         job.disk, uuid, e)
        return self._until(uuid, deadline, lambda seen: (
            seen.block_jobs is not None and
            not disks.intersection(job.disk for job in seen.block_jobs)))

    def _until(self, uuid, deadline, gone):
        """Look at a domain until something is gone, or the time is over."""
        while True:
            left = deadline - time.monotonic()
            seen = self.observe(uuid, max(left, POLL_INTERVAL))
            if gone(seen) or left <= 0:
                return seen
            time.sleep(POLL_INTERVAL)

    def _call(self, uuid, timeout, method, *args):
        """Call a method of a domain, on a connection of its own."""
        def call():
            with self._connections.lend() as connection:
                return getattr(
                    connection.lookupByUUIDString(uuid), method)(*args)
        return self._asks.call(uuid, timeout, call)

    def pause(self, uuid, timeout):
        """Pause a running domain.

        :param uuid: the domain's UUID
        :param timeout: seconds
        :raises nova_migration_guard.workers.CallTimeout: when there is no
            answer by then
        :raises Exception: what the connection or libvirt raises
        """
        self._call(uuid, timeout, 'suspend')

    def resume(self, uuid, timeout):
        """Let a paused domain run.

        :param uuid: the domain's UUID
        :param timeout: seconds
        :raises nova_migration_guard.workers.CallTimeout: when there is no
            answer by then
        :raises Exception: what the connection or libvirt raises
        """
        self._call(uuid, timeout, 'resume')

    def xml(self, uuid, timeout, inactive=False, secure=False):
        """Read a domain's XML.

        :param uuid: the domain's UUID
        :param timeout: seconds
        :param inactive: what it would be started with, not what runs; of a
            transient domain what runs, without what only a running one has
        :param secure: with its secrets, as a definition needs it
        :raises nova_migration_guard.workers.CallTimeout: when there is no
            answer by then
        :raises Exception: what the connection or libvirt raises
        """
        return self._call(uuid, timeout, 'XMLDesc',
                          (XML_INACTIVE if inactive else 0) |
                          (XML_SECURE if secure else 0))

    def define(self, uuid, xml, timeout):
        """Define a domain, so that it outlives its guest.

        :param uuid: the domain's UUID
        :param xml: its definition
        :param timeout: seconds
        :raises nova_migration_guard.workers.CallTimeout: when there is no
            answer by then
        :raises Exception: what the connection or libvirt raises
        """
        def define():
            with self._connections.lend() as connection:
                connection.defineXML(xml)
        self._asks.call(uuid, timeout, define)

    def thaw(self, uuid, timeout):
        """Thaw the file systems of a guest, through its agent.

        :param uuid: the domain's UUID
        :param timeout: seconds
        :raises nova_migration_guard.workers.CallTimeout: when there is no
            answer by then
        :raises Exception: what the connection or libvirt raises
        """
        self._call(uuid, timeout, 'fsThaw')

    def resize(self, uuid, disk, size, timeout):
        """Let a guest see the size that a disk has now.

        :param uuid: the domain's UUID
        :param disk: the target name
        :param size: bytes
        :param timeout: seconds
        :raises nova_migration_guard.workers.CallTimeout: when there is no
            answer by then
        :raises Exception: what the connection or libvirt raises
        """
        self._call(uuid, timeout, 'blockResize', disk, size, RESIZE_BYTES)

    def rest(self):
        """Keep no connection to libvirt open until the next question."""
        self._connections.close_idle()
