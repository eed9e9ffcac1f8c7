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
import time

from oslo_log import log as logging

from nova_migration_guard import looks
from nova_migration_guard import observation
from nova_migration_guard import workers

LOG = logging.getLogger(__name__)

# virDomainXMLFlags
XML_SECURE = 1
XML_INACTIVE = 2

# virDomainBlockJobAbortFlags, virDomainBlockResizeFlags
ABORT_ASYNC = 1
RESIZE_BYTES = 1

# How often a job that was aborted is looked at until it is gone, in seconds.
# A cancelled mirror takes 0.07 to 0.24 s to go away.
POLL_INTERVAL = 0.1

# What this module's callers say it with.
NO_DOMAIN = looks.NO_DOMAIN
OPERATION_INVALID = looks.OPERATION_INVALID
OPERATION_UNSUPPORTED = looks.OPERATION_UNSUPPORTED
State = observation.State
PausedReason = observation.PausedReason
ShutoffReason = observation.ShutoffReason
JobType = observation.JobType
Operation = observation.Operation
BlockJobType = observation.BlockJobType
DomainJob = observation.DomainJob
BlockJob = observation.BlockJob
Observation = observation.Observation
ABSENT = observation.ABSENT
OFF = looks.OFF


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
        return list(self._asks.call('listing', timeout, self._listing))

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
        asked = {uuid: looks.Look(self._connections, self._error, uuid)
                 for uuid in uuids}
        _, errors = self._asks.call_each(
            asked, timeout, budget, lambda uuid: asked[uuid].ask())
        return {uuid: look.seen(str(errors.get(uuid, '')))
                for uuid, look in asked.items()}

    def survey(self, wanted, in_flight, timeout, budget):
        """Find out what libvirt does with all its domains, side by side.

        A domain that runs and has no job costs one call for its job and one
        for each disk; one that is off costs none. The rest is asked for all
        of them together.

        :param wanted: the UUIDs that the caller knows; libvirt may have none
            of that UUID, or others
        :param in_flight: the UUIDs of domains with which something was begun
        :param timeout: seconds for one domain
        :param budget: seconds for all of them together
        :returns: {uuid: :class:`Observation`} with every UUID that is wanted
            or that libvirt has
        :raises nova_migration_guard.workers.CallTimeout: when libvirt does
            not list its domains by then
        :raises Exception: what the connection or libvirt raises then
        """
        deadline = time.monotonic() + budget
        running = self._asks.call('listing', timeout, self._listing)
        glances = {
            uuid: looks.Glance(self._connections, self._error, uuid)
            for uuid, active in running.items()
            if active and uuid not in in_flight}
        errors = self._asks.call_each(
            glances, timeout, budget, lambda uuid: glances[uuid].ask())[1]
        try:
            states = self._asks.call('states', timeout, self._states)
        except Exception as e:
            LOG.warning('libvirt does not list the states of its domains; '
                        'each is asked for its own: %s', e)
            states, errors = {}, {}
        seen = dict.fromkeys(set(wanted).difference(running), ABSENT)
        for uuid in set(states).intersection(running).difference(in_flight):
            known = self._known(glances.get(uuid), errors.get(uuid),
                                *states[uuid])
            if known is not None:
                seen[uuid] = known
        seen.update(self.observe_each(
            set(running).difference(seen), timeout,
            deadline - time.monotonic()))
        return seen

    @staticmethod
    def _known(glance, error, state, reason, persistent):
        """What is known of a domain that has no job, or whose monitor hangs.

        :returns: an :class:`Observation`, or None when the domain has to be
            asked closely
        """
        known = Observation(present=True, state=state, reason=reason,
                            persistent=persistent)
        if glance is None:
            return None if state not in OFF else dataclasses.replace(
                known, job=DomainJob(), block_jobs=())
        if glance.idle:
            return dataclasses.replace(
                known, job=DomainJob(), block_jobs=(), disks=glance.disks)
        if isinstance(error, workers.CallTimeout):
            # a second question would wait as the first one does
            return dataclasses.replace(
                known, disks=glance.disks, trouble=str(error))
        return None

    def _listing(self):
        """{UUID: whether it runs} of all domains."""
        with self._connections.lend() as connection:
            return {domain.UUIDString(): domain.ID() >= 0
                    for domain in connection.listAllDomains(0)}

    def _states(self):
        with self._connections.lend() as connection:
            return looks.states(connection)

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
