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

"""How libvirt is asked what one domain does, and what all of them do.

A :class:`Look` asks one domain everything, in an order that fits one whose
job may end meanwhile. Of a domain that nobody has begun anything with, a
:class:`Glance` at its jobs is enough, where what goes with "no job" is asked
for all domains at once after it.
"""

import dataclasses

from nova_migration_guard import domain_xml
from nova_migration_guard import observation

# virErrorNumber
NO_DOMAIN = 42
OPERATION_INVALID = 55
# "migration statistics are available only on the source host": what jobStats
# says of the incoming side of a migration
OPERATION_UNSUPPORTED = 84

# virDomainStatsTypes, virConnectListAllDomainsFlags
STATS_STATE = 1
LIST_TRANSIENT = 8

#: The states of a domain that can have no job.
OFF = (observation.State.SHUTOFF, observation.State.CRASHED,
       observation.State.NOSTATE)


def _job(domain, error):
    try:
        stats = domain.jobStats(0)
    except error as e:
        if e.get_error_code() == OPERATION_UNSUPPORTED:
            return observation.DomainJob(
                observation.JobType.UNBOUNDED,
                observation.Operation.MIGRATION_IN)
        if (e.get_error_code() == OPERATION_INVALID and
                not domain.isActive()):
            return observation.DomainJob()
        raise
    elapsed = stats.get('time_elapsed')
    return observation.DomainJob(
        observation.member(observation.JobType, stats['type']),
        observation.member(
            observation.Operation,
            stats.get('operation', observation.Operation.UNKNOWN)),
        None if elapsed is None else elapsed / 1000.0,
        bool(stats.get('memory_processed')),
        observation.part(stats.get('data_processed'),
                         stats.get('data_total')))


def _block_jobs(domain, disks):
    for disk in disks:
        # {} or None: no job (a fact about now, not a success)
        info = domain.blockJobInfo(disk.dev, 0)
        if info and info.get('type'):
            yield observation.BlockJob(
                disk.dev,
                observation.member(observation.BlockJobType, info['type']),
                disk.mirror,
                observation.part(info.get('cur'), info.get('end')))


class Look(object):
    """Asks one domain, and keeps what it has learned if the next call hangs.

    The questions that cannot hang come first: ``state`` and the XML answer
    even while the monitor hangs, jobStats and blockJobInfo may not.

    :param connections: the
        :class:`~nova_migration_guard.connections.Connections` to ask over
    :param error: the class of libvirt's errors
    :param uuid: the domain's UUID
    """

    def __init__(self, connections, error, uuid):
        self._connections = connections
        self._error = error
        self._uuid = uuid
        self._seen = observation.Observation()

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
                self._seen = observation.ABSENT

    def _ask(self, domain):
        self._learn_state(domain)
        disks = domain_xml.disks(domain.XMLDesc(0))
        self._learn(disks=disks)
        if self._seen.state in OFF:
            self._learn(job=observation.DomainJob(), block_jobs=())
            return
        job = _job(domain, self._error)
        # A migration that ended since the first look has taken the guest
        # away: the state that goes with "no job" is the one after it.
        self._learn_state(domain)
        self._learn(job=job)
        if job.active and job.operation == observation.Operation.MIGRATION_IN:
            # every question to an incoming domain's blocks waits for 30 s
            self._learn(block_jobs=())
            return
        block_jobs = tuple(_block_jobs(domain, disks))
        # A job that ended since the first look may have changed the chain:
        # the disks that go with "no job" are those after it.
        self._learn(disks=domain_xml.disks(domain.XMLDesc(0)))
        self._learn(block_jobs=block_jobs)

    def _learn_state(self, domain):
        state, reason = domain.state(0)[:2]
        self._learn(present=True,
                    state=observation.member(observation.State, state),
                    reason=reason, persistent=bool(domain.isPersistent()))


class Glance(object):
    """Asks one domain for its jobs, and keeps what it has learned.

    For a domain that runs, and with which nobody has begun anything. It is
    :attr:`idle` when that has turned out to be so.

    The parameters are those of :class:`Look`.
    """

    def __init__(self, connections, error, uuid):
        self._connections = connections
        self._error = error
        self._uuid = uuid
        self.disks = None
        self.idle = False

    def ask(self):
        """Ask for the disks and the jobs, one call for each.

        :raises: libvirt's error
        """
        with self._connections.lend() as connection:
            domain = connection.lookupByUUIDString(self._uuid)
            self.disks = domain_xml.disks(domain.XMLDesc(0))
            self.idle = not (_job(domain, self._error).active or any(
                _block_jobs(domain, self.disks)))


def states(connection):
    """Ask for every domain's state, in two calls.

    Neither waits for a monitor, nor for a job that has a domain locked.

    :param connection: a ``libvirt.virConnect``
    :returns: {uuid: (state, reason, whether it is persistent)}
    :raises: libvirt's error
    """
    transient = {domain.UUIDString() for domain in
                 connection.listAllDomains(LIST_TRANSIENT)}
    return {domain.UUIDString(): (
        observation.member(observation.State, stats['state.state']),
        stats['state.reason'], domain.UUIDString() not in transient)
        for domain, stats in connection.getAllDomainStats(STATS_STATE)}
