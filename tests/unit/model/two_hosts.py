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

"""Two hosts, one guest, and the guard in the nova-compute of each.

Everything that the guard talks to is modelled here, and nothing of the guard:
verdicts, settlements, operations and journal are the real ones. The model's
Nova starts a guest wherever it is told to, as Nova does.
"""

import itertools
import types

from nova_migration_guard import facts
from nova_migration_guard import guard
from nova_migration_guard import journal

from tests.unit.model import libvirt

UUID = '6d8a2b0e-4c1c-4a53-9f5b-0c1d3a1f7e11'
#: What a migration takes, and its end gives back.
TAKEN = frozenset(['allocation', 'binding', 'attachment', 'folder'])


class Away(Exception):
    """Somebody does not answer."""


class Killed(Exception):
    """What a process that is killed gets from its next call.

    Nothing that it does after that has an effect.
    """


class Job(object):
    """A migration job of libvirt's."""

    def __init__(self, source, destination, controller):
        self.source = source
        self.destination = destination
        #: the process that monitors it, or None
        self.controller = controller


class World(object):
    """Both hosts and what Nova has written down.

    :param journals: a folder
    """

    def __init__(self, journals):
        self.journals = journals
        #: {host: 'running' | 'paused' | 'off' | 'incoming'}
        self.domains = {'a': 'running'}
        self.disks = {'a': 'good'}
        self.job = None
        self.processes = {'a': None, 'b': None}
        self.host = 'a'
        self.vm_state = 'active'
        self.task_state = None
        self.deleted = False
        self.records = []
        self.taken = set()
        #: whether abortJob ends a job
        self.aborts = True
        #: after how many more steps the process that settles is killed
        self.dies_in = None
        #: whether guests are resumed when nova-compute starts
        self.resumes = False
        self._numbers = itertools.count(1)

    @staticmethod
    def other(host):
        return 'b' if host == 'a' else 'a'

    @property
    def running(self):
        return [host for host, state in self.domains.items()
                if state == 'running']

    # ---- libvirt

    def complete(self):
        """The guest switches over."""
        job, self.job = self.job, None
        del self.domains[job.source]
        self.domains[job.destination] = 'running'
        self.disks[job.source] = 'stale'
        self.disks[job.destination] = 'good'
        return job

    def fail(self):
        """The guest goes on where it was."""
        job, self.job = self.job, None
        self.domains.pop(job.destination, None)
        self.domains[job.source] = 'running'
        return job

    # ---- Nova

    def instances(self, host):
        """The instances that Nova says are on a host."""
        if self.deleted or self.host != host:
            return []
        return [Instance(self)]

    def open_records(self):
        return [record for record in self.records
                if record.status == 'running']

    def begin_migration(self):
        """What Nova has done when libvirt begins to migrate."""
        source = self.host
        process = self.processes[source]
        number = next(self._numbers)
        record = types.SimpleNamespace(
            id=number, uuid='migration-%d' % number, status='running',
            source_compute=source, dest_compute=self.other(source))
        self.records.append(record)
        self.task_state = 'migrating'
        self.taken = set(TAKEN)
        self.disks[record.dest_compute] = 'partial'
        self.domains[record.dest_compute] = 'incoming'
        process.guard._journal.begin(journal.Entry(
            operation=journal.LIVE_MIGRATION, phase=journal.STARTED,
            instance=UUID, migration=record.uuid, source=source,
            destination=record.dest_compute, vm_state=self.vm_state,
            request_id='req', begun=0.0, block_migration=True,
            migrate_data={}, source_bdms={}))
        self.job = Job(source, record.dest_compute, process)

    def start_guest(self, host):
        """What Nova's power_on does: it starts what it is told to start."""
        self.domains[host] = 'running'

    def delete_at(self, host):
        """terminate_instance on a host."""
        self.domains.pop(host, None)
        self.disks.pop(host, None)
        self.deleted = True


class Process(object):
    """A nova-compute.

    :param world: the :class:`World`
    :param host: the host's name
    :param options: the ``[migration_guard]`` options
    """

    def __init__(self, world, host, options):
        self.world = world
        self.name = host
        self.alive = True
        # no block operation is under way here
        blocks = types.SimpleNamespace(snapshot_folder='')
        self.guard = guard.Guard(self, Migrations(self), blocks,
                                 Actions(self), Monitors(self), options)

    def call(self):
        """Begin a call that leaves the process."""
        if not self.alive:
            raise Killed()
        if self.world.dies_in is not None:
            self.world.dies_in -= 1
            if self.world.dies_in <= 0:
                self.world.dies_in = None
                self.kill()
                raise Killed()

    def kill(self):
        self.alive = False
        self.guard.stop()
        if self.world.processes[self.name] is self:
            self.world.processes[self.name] = None
        job = self.world.job
        if job is not None and job.controller is self:
            job.controller = None

    def start(self):
        """Nova's start-up."""
        self.world.processes[self.name] = self
        self.guard.start_up()
        for instance in self.world.instances(self.name):
            if self.guard.may_initialise(instance):
                self.initialise(instance)

    # ---- what NovaHost does

    def connect(self):
        self.call()
        return libvirt.Connection(self, UUID)

    @staticmethod
    def libvirt_error():
        return libvirt.LibvirtError

    def instances(self):
        self.call()
        return self.world.instances(self.name)

    def instance(self, uuid):
        self.call()
        return None if self.world.deleted else Instance(self.world)

    def open_records(self, uuid):
        self.call()
        return [record_of(record) for record in self.world.open_records()
                if record.source_compute == self.name]

    def all_open_records(self):
        found = self.open_records(UUID)
        return {UUID: found} if found else {}

    def records(self, uuid):
        self.call()
        return [record_of(record) for record in self.world.records]

    def migrations_to_end(self, uuid, journaled):
        self.call()
        left = [record for record in self.world.records
                if record.source_compute == self.name]
        return [record for record in left if record.status == 'running' or
                record.uuid == journaled] or left[-1:]

    def make_busy(self, instance):
        self.call()
        if self.world.task_state is None:
            self.world.task_state = 'migrating'

    def take_over(self, instance):
        self.call()
        self.world.task_state = 'migrating'

    def give_back_task(self, uuid, task_state):
        self.call()
        if self.world.task_state is None:
            self.world.task_state = task_state

    def restore_vm_state(self, instance, vm_state):
        self.call()
        if self.world.vm_state == 'error' and vm_state is not None:
            self.world.vm_state = vm_state

    def _ask(self, peer):
        self.call()
        if self.world.processes[peer] is None:
            raise Away('%s does not answer' % peer)

    def has_domain_at(self, instance, peer):
        self._ask(peer)
        return peer in self.world.domains

    def runs_at(self, instance, peer):
        self._ask(peer)
        return self.world.domains.get(peer) == 'running'

    def works_at(self, uuid, peer):
        self.call()
        return False

    def initialise(self, instance):
        self.call()
        if (self.world.resumes and self.world.vm_state == 'active' and
                self.world.domains.get(self.name) != 'running'):
            self.world.start_guest(self.name)


def record_of(record):
    return facts.Record(record.id, record.status, record.source_compute,
                        record.dest_compute)


class Instance(object):
    """A nova.objects.Instance as one process has read it."""

    uuid = UUID

    def __init__(self, world):
        self._world = world
        self.refresh()

    def refresh(self):
        self.host = self._world.host
        self.vm_state = self._world.vm_state
        self.task_state = self._world.task_state


class Monitors(object):
    """Nova's monitors of adopted migrations: here, none is adopted."""

    def __init__(self, process):
        self.process = process

    def begin(self, instance, run):
        raise AssertionError('adopted')


class Migrations(object):
    """LiveMigrations: what Nova's own code does, step by step."""

    def __init__(self, process):
        self.process = process
        self.ending = set()

    @property
    def world(self):
        return self.process.world

    def _answered_by(self, peer):
        self.process.call()
        if self.world.processes[peer] is None:
            raise Away('%s does not answer' % peer)

    def _give_back(self):
        for thing in sorted(self.world.taken):
            self.process.call()
            self.world.taken.discard(thing)

    def _end(self, migrations, status):
        for migration in migrations:
            self.process.call()
            if migration.status == 'running':
                migration.status = status

    def roll_back(self, context, instance, entry, migrations, destination,
                  domain_xml, answers=True):
        self._answered_by(destination)
        self.world.disks.pop(destination, None)
        self.world.domains.pop(destination, None)
        self._give_back()
        self.process.call()
        self.world.task_state = None
        self._end(migrations, 'cancelled')

    def undo(self, context, instance, migrations):
        self._give_back()
        self.process.call()
        self.world.task_state = None
        self._end(migrations, 'cancelled')

    def finish(self, context, instance, entry, migrations, destination):
        self.process.call()
        self.world.disks.pop(self.process.name, None)
        self._answered_by(destination)
        self.world.host = destination
        self.world.task_state = None
        self.close(context, instance, entry, migrations, destination)

    def close(self, context, instance, entry, migrations, destination):
        self.process.call()
        self.world.disks.pop(self.process.name, None)
        self._give_back()
        self._end(migrations, 'completed')

    def abandon(self, migrations):
        self._give_back()
        self._end(migrations, 'cancelled')

    def left_behind(self, entry):
        return None

    def keep_context_dropped(self, instance):
        self.process.call()


class Actions(object):
    """InstanceActions that nobody reads."""

    def __init__(self, process):
        self.process = process

    def settlement(self, uuid, ruling):
        self.process.call()
        return self

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return False

    def notify_abort(self, instance, phase):
        self.process.call()

    def hold(self, uuid, reason, fault=None):
        self.process.call()

    def refuse_deletion(self, context, uuid, reason):
        self.process.world.task_state = 'migrating'

    def delete_where_it_is(self, context, uuid, bdms, delete):
        self.process.world.delete_at(self.process.world.host)

    @staticmethod
    def refuse_start(reason):
        raise Away(reason)
