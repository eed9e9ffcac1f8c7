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

"""The start-up pass, the instances that are held, and the settler.

An instance is initialised by Nova only after the guard has judged it. What
cannot be judged, for whatever reason, is held: that is the default, and not
something that an error path has to remember.
"""

import itertools
import threading
import time
import typing

from oslo_log import log as logging

from nova_migration_guard import adoption
from nova_migration_guard import block_tracking
from nova_migration_guard import connections
from nova_migration_guard import facts
from nova_migration_guard import held as held_instances
from nova_migration_guard import journal
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import metrics
from nova_migration_guard import operations
from nova_migration_guard import parts
from nova_migration_guard import pauses
from nova_migration_guard import peers
from nova_migration_guard import settle
from nova_migration_guard import verdict
from nova_migration_guard import words
from nova_migration_guard import workers

LOG = logging.getLogger(__name__)

# How many instances are settled at the same time, and how many questions to
# other hosts are under way. One that nobody answers takes as long as Nova's
# RPC waits.
SETTLED_AT_ONCE = 16
ASKED_AT_ONCE = 64

# The task states that a settlement ends.
_SETTLED_STATES = (facts.MIGRATING,) + facts.SNAPSHOT_STATES


class Guard(object):
    """Guards the instances of one nova-compute.

    :param host: a :class:`nova_migration_guard.nova_host.host.NovaHost`
    :param migrations: a
        :class:`nova_migration_guard.nova_host.live_migration.LiveMigrations`
    :param blocks: a
        :class:`nova_migration_guard.nova_host.block_operations.BlockOperations`
    :param actions: an
        :class:`nova_migration_guard.nova_host.actions.InstanceActions`
    :param monitors: a
        :class:`nova_migration_guard.nova_host.monitors.Monitors`
    :param options: the ``[migration_guard]`` options
    """

    _settler: settle.Settler

    def __init__(self, host, migrations, blocks, actions, monitors, options):
        error = host.libvirt_error()
        self.held: typing.Dict[str, held_instances.Held] = {}
        self._host = host
        self._actions = actions
        self._options = options
        self._jobs = libvirt_jobs.LibvirtJobs(
            connections.Connections(host.connect, error), error,
            workers.Workers(options.libvirt_workers))
        self._journal = journal.Journal(options.journal_dir, host.name)
        self._records = held_instances.Records(options.journal_dir, host.name)
        self._parts = parts.Parts(host, migrations, blocks, actions,
                                  self._jobs, self._journal, words.Words(
                                      options.journal_dir, host.name),
                                  options)
        #: see :class:`nova_migration_guard.operations.Operations`
        self.operations = operations.Operations(
            self._parts, self.hold, self.held, self._settle_now)
        #: see :class:`nova_migration_guard.block_tracking.BlockTracking`
        self.blocks = block_tracking.BlockTracking(
            self._parts, self.hold,
            lambda uuid: self._settler.keep_busy(uuid))
        self._settler = settle.Settler(
            self._parts, peers.Peers(
                host, workers.Workers(ASKED_AT_ONCE), options),
            self.blocks.running)
        self._monitors = monitors
        self._adoptions = adoption.Adoptions(
            self._parts, monitors, self.hold, self._adopted_has_ended)
        self._settlings = workers.Workers(SETTLED_AT_ONCE)
        self._pauses = pauses.Pauses(options.settle_interval,
                                     options.settle_interval_max)
        self._judged = set()
        self._moved = set()
        self._adopted = set()
        # {uuid: task state} of the instances that Nova's start-up skipped
        self._skipped = {}
        self._stopped = threading.Event()

    def start_up(self):
        """Judge every instance of the host and settle what is in flight.

        Called before Nova handles its first instance. Raises nothing; takes no
        longer than ``startup_timeout`` plus two reads from Nova's database.
        """
        try:
            self._start_up(time.monotonic() + self._options.startup_timeout)
        except Exception:
            LOG.exception('The instances of this host could not be judged. '
                          'Every one is held until they can be.')
        self._jobs.rest()

    def _start_up(self, deadline):
        instances = {instance.uuid: instance
                     for instance in self._host.instances()}
        open_records = self._host.all_open_records()
        self._settler.left_behind(
            itertools.chain.from_iterable(open_records.values()))
        entries, blocks = self._entries()
        elsewhere = set(entries).union(open_records, blocks).difference(
            instances)
        seen = self._observe(instances, blocks, elsewhere, deadline,
                             set(open_records).union(entries))
        in_flight = set(elsewhere)
        for uuid, instance in instances.items():
            ruling = self._first_ruling(
                instance, open_records.get(uuid, []), entries.get(uuid),
                blocks.get(uuid, []), seen[uuid])
            if ruling.verdict is verdict.Verdict.LEAVE:
                self._judged.add(uuid)
            else:
                LOG.info('%(verdict)s: %(reason)s.',
                         {'verdict': ruling.verdict.value,
                          'reason': ruling.reason}, instance=instance)
                in_flight.add(uuid)
        if not self._parts.enforces:
            metrics.count('reported_total', len(in_flight))
            self._judged.update(in_flight)
            return
        self._settle_each({uuid: seen[uuid] for uuid in in_flight},
                          deadline - time.monotonic(), starting=True)

    def _entries(self):
        """The journal: ({uuid: migration}, {uuid: [block operation]})."""
        blocks: typing.Dict[str, list] = {}
        try:
            for entry in (self._journal.block_operations()
                          if self._options.block_jobs else ()):
                blocks.setdefault(entry.instance, []).append(entry)
            return self._journal.entries(), blocks
        except journal.JournalError as e:
            LOG.error('What was in flight is judged without the journal. %s',
                      e)
            return {}, {}

    def _observe(self, instances, blocks, elsewhere, deadline, in_flight):
        """Ask libvirt about the instances, and report what is not Nova's.

        :param in_flight: the UUIDs of those with which something was begun,
            besides the block operations and what a task state says
        """
        wanted = set(instances).union(elsewhere)
        try:
            seen = self._jobs.survey(
                wanted, in_flight.union(blocks, (
                    uuid for uuid, instance in instances.items()
                    if instance.task_state is not None)),
                self._options.call_timeout, deadline - time.monotonic())
        except Exception as e:
            LOG.warning('libvirt does not list its domains: %s', e)
            trouble = libvirt_jobs.Observation(trouble=str(e))
            return dict.fromkeys(wanted, trouble)
        for uuid, observation in seen.items():
            for found in verdict.not_novas(
                    observation, uuid in instances,
                    self._foreign_jobs(instances.get(uuid), observation,
                                       blocks.get(uuid, []))):
                LOG.warning('Left alone: %s.', found, instance_uuid=uuid)
        return seen

    def _foreign_jobs(self, instance, observation, entries):
        """The block jobs of a domain that are not Nova's to be reported."""
        if instance is None:
            return observation.block_jobs or ()
        if (self._options.foreign_block_jobs == 'abort' or
                not self._options.block_jobs):
            return ()
        return self._settler.know_blocks(
            instance, observation, entries, True).foreign_jobs

    def _first_ruling(self, instance, records, entry, blocks, seen):
        try:
            known = self._settler.know(instance, seen, records, entry)
            ruling = verdict.judge(known)
            if ruling.verdict is verdict.Verdict.LEAVE:
                ruling = self._settler.judge_blocks(self._settler.know_blocks(
                    instance, seen, blocks, True))
            return ruling
        except Exception as e:
            LOG.exception('The records of the instance could not be read.',
                          instance=instance)
            return verdict.Ruling(verdict.Verdict.HOLD, str(e))

    def _settle_each(self, observations, budget, starting=False):
        """Settle instances side by side; hold those that are not.

        :param observations: {uuid: what libvirt has just said, or None}
        :param budget: seconds for all of them together
        :param starting: whether nova-compute starts
        """
        timeout = min(self._options.abort_timeout, budget)
        if timeout <= 0:
            for uuid in observations:
                self.hold(uuid, 'startup_timeout is over')
            return
        results, errors = self._settlings.call_each(
            observations, budget, budget,
            lambda uuid: self._settler.settle(
                uuid, timeout, observations[uuid], starting))
        for uuid, ruling in results.items():
            if ruling.verdict is verdict.Verdict.HOLD:
                self.hold(uuid, ruling.reason, ruling.deletable)
            elif ruling.verdict is verdict.Verdict.ADOPT:
                self._adopt(uuid, ruling)
            else:
                self._release(uuid, ruling)
        for uuid, error in errors.items():
            self.hold(uuid, 'it could not be settled: %s' % error)

    @property
    def _attempt_time(self):
        """Seconds for one attempt outside the start: abort, look, ask."""
        return self._options.abort_timeout + 2 * self._options.call_timeout

    def hold(self, uuid, reason, deletable=False):
        """Hold an instance until it is settled.

        :param uuid: the instance's UUID
        :param reason: why, in one sentence
        :param deletable: whether it may be deleted all the same
        """
        if uuid not in self.held:
            self.held[uuid] = held_instances.Held(
                reason='', since=self._records.since(uuid))
        held = self.held[uuid]
        held.deletable = deletable
        held.attempts += 1
        held.next_attempt = time.monotonic() + self._pauses.after(
            held.attempts)
        if held.reason != reason:
            held.reason = reason
            LOG.warning('Held: %s.', reason, instance_uuid=uuid)
        refused = self._settler.answers.pop(uuid, '')
        self._records.write(uuid, held, self._settler.facts.get(uuid), refused)
        if refused:
            metrics.count('words_refused_total')
            self._parts.words.remove(uuid)
        metrics.gauge('held', len(self.held))

    def _report_held(self):
        """Show what is held, and why, where it is not shown yet."""
        for uuid, held in list(self.held.items()):
            if held.reported == held.reason:
                continue
            try:
                is_fault = held.reason.endswith(verdict.FAILED_POSTCOPY)
                self._actions.hold(
                    uuid, held.reason,
                    verdict.FAILED_POSTCOPY if is_fault else None)
                held.reported = held.reason
            except Exception as e:
                LOG.info('Its actions cannot show that it is held: %s', e,
                         instance_uuid=uuid)

    def _adopt(self, uuid, ruling):
        self._let_go(uuid)
        self._adopted.add(uuid)
        self._records.show_adopted(uuid)
        LOG.info('Adopted: %s.', ruling.reason, instance_uuid=uuid)
        try:
            self._adoptions.begin(uuid, ruling)
        except Exception as e:
            self.hold(uuid, 'its migration could not be adopted: %s' % e)

    def _adopted_has_ended(self, uuid):
        """Make up for Nova's start-up, where the guest has stayed."""
        ended = uuid not in self.held
        if ended:
            self._ended_where(uuid).add(uuid)
        self._adopted.discard(uuid)
        self._records.hide_adopted(uuid)
        if ended:
            self._initialise(uuid, self._skipped.pop(uuid, None))

    def _ended_where(self, uuid):
        try:
            instance = self._host.instance(uuid)
        except Exception as e:
            LOG.warning('Nova does not say where it is: %s', e,
                        instance_uuid=uuid)
            return self._moved
        here = instance is not None and instance.host == self._host.name
        return self._judged if here else self._moved

    def _let_go(self, uuid):
        self.held.pop(uuid, None)
        self._settler.forget(uuid)
        self._records.remove(uuid)
        metrics.gauge('held', len(self.held))

    def _release(self, uuid, ruling):
        self._let_go(uuid)
        if ruling.verdict in (verdict.Verdict.FINISH, verdict.Verdict.CLOSE):
            self._moved.add(uuid)
        else:
            self._judged.add(uuid)
        LOG.info('Settled: %s.', ruling.reason, instance_uuid=uuid)
        metrics.count('settled_total', verdict=ruling.verdict.name.lower())

    def delete(self, context, instance, bdms, delete):
        """Delete a held instance: settle it first, and delete it where it is.

        One that cannot be settled stays: its guest may run elsewhere.

        :param context: of the user's request
        :param instance: a ``nova.objects.Instance``
        :param bdms: its block device mappings
        :param delete: Nova's ``terminate_instance``
        """
        uuid = instance.uuid
        # the task "deleting" waits for this
        self._settle_each({uuid: None}, self._attempt_time, starting=True)
        held = self.held.get(uuid)
        if held is not None and not held.deletable:
            return self._actions.refuse_deletion(context, uuid, held.reason)
        return self._actions.delete_where_it_is(context, uuid, bdms, delete)

    def must_not_be_held(self, instance):
        """Let no guest be started that may run elsewhere (R2).

        :param instance: a ``nova.objects.Instance``
        :raises nova.exception.MigrationError: when it is held
        """
        held = self.held.get(instance.uuid)
        if held is not None:
            self._actions.refuse_start(held.reason)

    def may_initialise(self, instance):
        """Tell whether Nova's start-up may handle an instance.

        An instance that the guard has not judged is held.

        :param instance: the ``nova.objects.Instance`` that is next
        """
        uuid = instance.uuid
        if uuid in self._moved:
            return False
        if uuid in self._adopted:
            self._skipped[uuid] = instance.task_state
            return False
        if uuid in self._judged:
            if instance.task_state in _SETTLED_STATES:
                # Nova read it before the guard settled it
                instance.refresh()
            return True
        if not self._parts.enforces:
            return True
        self._skipped[uuid] = instance.task_state
        if uuid not in self.held:
            self.hold(uuid, 'it could not be judged when nova-compute '
                      'started')
        return False

    def start_settler(self):
        """Settle what is held, in the background, until :meth:`stop`."""
        self._records.keep_only(set(self.held), self._adopted)
        self._records.show_running()
        thread = threading.Thread(target=self._run, name='migration-guard')
        thread.daemon = True
        thread.start()

    def empty_queue(self):
        """Cancel the live migrations that have not begun, and undo them.

        For a nova-compute that stops. Raises nothing, and takes no longer
        than ``call_timeout``; what is not undone by then the next start
        undoes.
        """
        if not self._parts.enforces:
            return
        cancelled = {migration.instance_uuid: migration
                     for migration in self._monitors.cancel_queued()}
        if not cancelled:
            return
        timeout = self._options.call_timeout
        done, errors = self._settlings.call_each(
            cancelled, timeout, timeout,
            lambda uuid: self.operations.withdraw(cancelled[uuid]))
        for uuid in done:
            LOG.info('The queued live migration is cancelled and undone, '
                     'since nova-compute stops.', instance_uuid=uuid)
        for uuid, error in errors.items():
            LOG.warning('The queued live migration is left to the next start '
                        'of nova-compute: %s', error, instance_uuid=uuid)

    def stop(self):
        """End the thread after the attempt that it is at."""
        self._stopped.set()
        self._records.hide_running()

    def _run(self):
        self._report_held()
        again = time.monotonic() + self._pauses.between_rounds()
        while not self._stopped.wait(min(again - time.monotonic(),
                                         words.INTERVAL)):
            new = self._parts.words.new()
            for uuid in new:
                if uuid in self.held:
                    self.held[uuid].next_attempt = 0
            if new or time.monotonic() >= again:
                self.settle_held(time.monotonic())
                again = time.monotonic() + self._pauses.between_rounds()

    def settle_held(self, now=None):
        """Try once to settle held instances. Raises nothing.

        A settled instance gets the part of Nova's start-up that it missed.

        :param now: leave those that are due later, by the monotonic clock
        """
        uuids = [uuid for uuid, held in list(self.held.items())
                 if now is None or held.next_attempt <= now]
        if uuids:
            self._settle_now(*uuids)
        self._jobs.rest()
        self._report_held()

    def _settle_now(self, *uuids):
        """Try to settle held instances, and make up for what they missed."""
        try:
            self._settle_each(dict.fromkeys(uuids), self._attempt_time)
        except Exception:
            LOG.exception('The held instances could not be settled; the next '
                          'attempt is within %s s.',
                          self._options.settle_interval)
        for uuid in uuids:
            if uuid not in self.held and uuid in self._skipped:
                self._initialise(uuid, self._skipped.pop(uuid))

    def _initialise(self, uuid, skipped_task_state):
        """Make up for the part of Nova's start-up that an instance missed.

        Nova's start-up does a task again that was left. One that came up since
        belongs to this process, as a migration does.
        """
        try:
            instance = self._host.instance(uuid)
            if (instance is not None and instance.host == self._host.name and
                    instance.task_state in (None, skipped_task_state) and
                    instance.task_state != facts.MIGRATING):
                self._host.initialise(instance)
        except Exception:
            LOG.exception('The instance is settled, but could not be '
                          'initialised.', instance_uuid=uuid)
