# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The world outside Nova, which outlives every nova-compute.

A :class:`Hypervisor` is what one host's libvirtd, its QEMUs and its disks
are. A test tells it what happens there; nova-compute reaches it through a
:class:`~tests.functional.libvirt_client.LibvirtClient`.
"""

import collections
import threading

from tests.functional import disks
from tests.functional import domain as domain_model
from tests.functional import libvirt_api as api
from tests.functional import migration_job
from tests.functional import waiting


class World(object):
    """All hypervisors of a test.

    :param instances_path: the folder under which each host has its own
        instances folder
    """

    def __init__(self, instances_path):
        self.instances_path = instances_path
        self.hypervisors = collections.OrderedDict()
        #: every migration job there ever was, the oldest first
        self.jobs = []
        #: UUIDs of the guests that ran on two hosts at the same time
        self.ran_twice = set()
        #: the hosts that no other host reaches over the network
        self.cut_off = set()
        #: UUIDs of the guests that migrateToURI3 was called for
        self.migrate_called = set()
        #: true at the test's end, when nothing may block any more
        self.over = False
        self._test_thread = threading.get_ident()
        #: one object for each thread that blocks in a call of libvirt's
        self.blocked = set()

    def add(self, host, connection):
        """Make a host's hypervisor.

        :param host: its name
        :param connection: the fake connection that knows the host's CPUs,
            memory and devices
        :returns: a :class:`Hypervisor`
        """
        hypervisor = Hypervisor(self, host, connection)
        self.hypervisors[host] = hypervisor
        return hypervisor

    def in_test_thread(self):
        """Whether the caller is the test itself, or its clean-up."""
        return threading.get_ident() == self._test_thread

    def wait_for_end(self, what):
        """Block until the test ends."""
        # there can be many that wait for nothing else
        self.wait_for(lambda: False, what, interval=0.5, timeout=86400)

    def wait_for(self, predicate, what, interval=0.02, timeout=900):
        """Block until a predicate is true or the test ends."""
        token = object()
        self.blocked.add(token)
        try:
            waiting.wait_until(lambda: self.over or predicate(), what,
                               timeout=timeout, interval=interval)
        finally:
            self.blocked.discard(token)

    def end(self):
        """Let go of every thread that blocks, and see it go."""
        self.over = True
        waiting.wait_until(lambda: not self.blocked, 'threads end',
                           timeout=10)

    def where(self, uuid):
        """Where the guest is: {host: 'running' | 'paused' | 'shutoff'}."""
        return {host: api.STATE_NAMES[domain.state_and_reason[0]]
                for host, domain in self.domains(uuid)}

    def look_for_twins(self, uuid):
        """Note it when the guest runs on two hosts. Every change asks."""
        if list(self.where(uuid).values()).count('running') > 1:
            self.ran_twice.add(uuid)

    def domains(self, uuid):
        """The guest's domains: [(host, Domain)]."""
        return [(host, hypervisor.domains[uuid])
                for host, hypervisor in self.hypervisors.items()
                if uuid in hypervisor.domains]

    def jobs_of(self, uuid):
        """The guest's migration jobs, the oldest first."""
        return [job for job in self.jobs if job.uuid == uuid]

    def running_job(self, uuid):
        """The guest's migration job that runs, or None."""
        for job in self.jobs_of(uuid):
            if job.running:
                return job
        return None


class Hypervisor(object):
    """libvirtd, the QEMUs and the disks of one host.

    :param world: the :class:`World`
    :param host: the host's name
    :param connection: Nova's fake connection, for what is not modelled here
    """

    def __init__(self, world, host, connection):
        self.world = world
        self.host = host
        self.connection = connection
        self.domains = collections.OrderedDict()
        self.disks = disks.Disks(world.instances_path, host)
        #: what abortJob does with a job; see abort_works and its like
        self.abort = self.abort_works
        #: what blockJobAbort does: (domain, target name)
        self.abort_block_job = domain_model.Domain.cancel_block_job
        #: UUIDs of the domains that abortJob was called for
        self.aborts = []
        #: UUIDs of the domains for which a migration was refused
        self.refused = []
        #: the calls on a connection beside one that hangs: with libvirt
        #: 9.0.0 each takes 5.0 s, here none takes longer
        self.slowed = []
        #: whether libvirtd answers
        self.away = False
        #: {method: [callable(client, uuid)]}, called before a client's call
        self.before = collections.defaultdict(list)
        #: the same, called after it
        self.after = collections.defaultdict(list)
        #: {method: how often any client has called it}
        self.calls = collections.Counter()
        self._numbers = {}

    # ---- what abortJob does

    def abort_works(self, job):
        """The job is cancelled at once."""
        if job.postcopy:
            raise api.error(
                api.ERR_OPERATION_INVALID, 'Requested operation is not '
                'valid: cannot abort migration in post-copy mode')
        job.cancel()

    def abort_is_refused(self, code=api.ERR_OPERATION_TIMEOUT,
                         message='Timed out during operation: cannot acquire '
                         'state change lock'):
        """Make abortJob raise, and the job go on."""
        def abort(job):
            raise api.error(code, message)
        self.abort = abort

    def abort_is_ignored(self, times=None):
        """Make abortJob return 0, and the job go on.

        :param times: how often; after that it works. None: always
        """
        left = [times]

        def abort(job):
            if left[0] == 0:
                self.abort_works(job)
            elif left[0]:
                left[0] -= 1
        self.abort = abort

    def abort_lingers(self):
        """Make abortJob return 0, and the job stay there as 'cancelled'.

        A destination or a network that does not answer makes it so.
        """
        def abort(job):
            job.cancelling = True
        self.abort = abort

    # ---- domains

    def define(self, xml):
        """defineXML

        :returns: the :class:`~tests.functional.domain.Domain`
        """
        new = domain_model.Domain(self, xml)
        known = self.domains.get(new.uuid)
        if known is not None:
            known.redefine(xml)
            return known
        self.domains[new.uuid] = new
        return new

    def run(self, xml):
        """createXML: a transient domain that runs."""
        domain = self._new_transient(xml)
        domain.start(api.RUNNING, api.RUNNING_BOOTED)
        return domain

    def receive(self, xml, job):
        """A migration has begun: its QEMU waits here for the guest."""
        domain = self._new_transient(xml)
        domain.start(api.PAUSED, api.PAUSED_MIGRATION)
        domain.incoming = job
        return domain

    def _new_transient(self, xml):
        domain = domain_model.Domain(self, xml)
        if domain.uuid in self.domains:
            raise api.error(api.ERR_OPERATION_FAILED, "operation failed: "
                            "domain '%s' already exists" % domain.name())
        domain.persistent = False
        self.domains[domain.uuid] = domain
        return domain

    def forget(self, domain):
        """The domain is neither running nor defined any more."""
        if self.domains.get(domain.uuid) is domain:
            del self.domains[domain.uuid]

    def number_of(self, domain):
        """libvirt's number for a running domain."""
        return self._numbers.setdefault(domain, len(self._numbers) + 1)

    def migrate(self, domain, host, xml, flags):
        """Begin a migration.

        :returns: the :class:`~tests.functional.migration_job.MigrationJob`
        """
        if domain.outgoing is not None:
            self.refused.append(domain.uuid)
            raise api.error(
                api.ERR_OPERATION_INVALID, "Requested operation is not "
                "valid: another migration job is already running for domain "
                "'%s'" % domain.name())
        job = migration_job.MigrationJob(
            domain, self.world.hypervisors[host], xml, flags)
        self.world.jobs.append(job)
        return job

    def power_off(self):
        """The host loses power: nothing runs on it, and nothing answers."""
        self.away = True
        for domain in list(self.domains.values()):
            if domain.active:
                domain.lose_power()

    def power_on(self):
        """The host is back, with its disks and what is defined."""
        self.away = False

    def libvirtd_dies(self):
        """libvirtd is gone, and with it the jobs that it drove."""
        self.away = True
        for domain in list(self.domains.values()):
            for job in (domain.outgoing, domain.incoming):
                if job is not None and not job.postcopy:
                    job.fail()

    def libvirtd_is_back(self):
        self.away = False
