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

"""Gathers one instance's facts and carries its verdict out.

What is written to Nova's records here is only what the facts have shown to be
true. Each step may fail (the conductor is away, libvirt hangs); then the
instance stays held, and the next attempt starts from the facts again.
"""

import dataclasses
import time
import typing

from oslo_log import log as logging

from nova_migration_guard import block_settlement
from nova_migration_guard import block_verdict
from nova_migration_guard import facts
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import metrics
from nova_migration_guard import release
from nova_migration_guard import verdict

LOG = logging.getLogger(__name__)

Verdict = verdict.Verdict

GONE = verdict.Ruling(Verdict.LEAVE, 'the instance is deleted')

#: The verdicts that end a migration.
ENDINGS = (Verdict.UNDO, Verdict.ROLL_BACK, Verdict.FINISH, Verdict.CLOSE)


class Settler(object):
    """Settles instances of one host, one at a time.

    :param parts: a :class:`nova_migration_guard.parts.Parts`
    :param peers: a :class:`nova_migration_guard.peers.Peers`
    :param running: a callable that gives the subjects of the block
        operations of this process that work on an instance: (uuid)
    """

    def __init__(self, parts, peers, running):
        self._parts = parts
        self._peers = peers
        self._running = running
        # IDs of the open records that an earlier process may have left
        self._left = None
        #: {UUID: :class:`nova_migration_guard.facts.Facts`} of the last
        #: attempt to settle each
        self.facts: typing.Dict[str, facts.Facts] = {}
        #: {UUID: why an operator's word was refused at the last attempt}
        self.answers: typing.Dict[str, str] = {}
        # UUIDs of the instances whose image task no process works at
        self._made_busy = set()

    def left_behind(self, records):
        """Tell apart what an earlier process left from what is requested.

        :param records: every open :class:`nova_migration_guard.facts.Record`
            at the start of this process
        """
        self._left = frozenset(record.id for record in records)

    def know(self, instance, observation, records, entry):
        """Put one instance's facts together, without the destination's.

        :param instance: a ``nova.objects.Instance``
        :param observation: what libvirt said of it
        :param records: its open records; the others are read only when the
            verdict depends on them
        :param entry: the journal's :class:`nova_migration_guard.journal.Entry`
            or None
        :returns: a :class:`nova_migration_guard.facts.Facts`
        """
        known = facts.Facts(
            host=self._parts.host.name, instance_host=instance.host,
            vm_state=instance.vm_state, task_state=instance.task_state,
            records=tuple(records), observation=observation,
            observed_at=time.time(), phase=entry.phase if entry else None,
            journaled_destination=entry.destination if entry else None,
            journaled_migration=entry.migration if entry else None,
            adopts=self._parts.options.on_restart == 'adopt',
            requested=frozenset() if self._left is None else frozenset(
                record.id for record in records) - self._left)
        if known.needs_all_records:
            known = dataclasses.replace(
                known, records=tuple(self._parts.host.records(instance.uuid)))
        return known

    def know_blocks(self, instance, observation, entries, starting):
        """Put the facts about one instance's block operations together.

        :param instance: a ``nova.objects.Instance``
        :param observation: what libvirt said of it
        :param entries: the journal's
            :class:`nova_migration_guard.journal.BlockOperation`
        :param starting: whether nova-compute starts
        :returns: a :class:`nova_migration_guard.block_verdict.Known`
        """
        return block_verdict.Known(
            task_state=instance.task_state, observation=observation,
            entries=tuple(entries), starting=starting,
            snapshot_folder=self._parts.blocks.snapshot_folder)

    def judge_blocks(self, known):
        """Decide what is to be done about an instance's block operations.

        :param known: a :class:`nova_migration_guard.block_verdict.Known`
        :returns: a :class:`nova_migration_guard.verdict.Ruling`
        """
        if not self._parts.options.block_jobs:
            return verdict.Ruling(Verdict.LEAVE, 'block_jobs is off')
        return block_verdict.judge(
            known, self._parts.options.foreign_block_jobs == 'abort')

    def settle(self, uuid, timeout, observation=None, starting=False):
        """Find out what is true of one instance, and carry its verdict out.

        :param uuid: the instance's UUID
        :param timeout: seconds to wait for a job that is aborted to be gone
        :param observation: what libvirt has just said of it, if it was asked
        :param starting: whether nova-compute starts, so that a task state is
            one that an earlier process has left
        :returns: the :class:`nova_migration_guard.verdict.Ruling` at the end:
            HOLD when the instance is not settled, ADOPT when its migration
            is to be seen through
        :raises Exception: what Nova or libvirt raise
        """
        attempt = _Attempt(self._parts, self._peers, self.know, uuid, timeout,
                           starting)
        try:
            ruling = attempt.settle(observation)
        finally:
            if attempt.known is not None:
                self.facts[uuid] = attempt.known
            if attempt.refusal:
                self.answers[uuid] = attempt.refusal
        if ruling.verdict not in (Verdict.HOLD, Verdict.ADOPT):
            ruling = self._settle_blocks(uuid, timeout, starting, ruling)
            if (ruling.verdict is Verdict.HOLD and
                    self._parts.words.read(uuid) is not None):
                self.answers[uuid] = 'no migration of it is in flight'
        return ruling

    def forget(self, uuid):
        """Forget what was learned of an instance that is settled.

        :param uuid: the instance's UUID
        """
        self.facts.pop(uuid, None)
        self.answers.pop(uuid, None)
        self._parts.words.remove(uuid)

    def _settle_blocks(self, uuid, timeout, starting, ruling):
        """End block operations, once no migration is in flight.

        :param ruling: what to return when there are none
        """
        if not self._parts.options.block_jobs:
            return ruling
        running = self._running(uuid)
        entries = self._parts.journal.block_operations(uuid)
        # one can have ended, or begun, since
        running = running.union(self._running(uuid))
        instance = self._parts.host.instance(uuid)
        if running:
            return self._after(uuid, instance, running, entries) or ruling
        if instance is None or instance.host != self._parts.host.name:
            return block_settlement.abandon(
                self._parts, uuid, instance, entries) or ruling
        known = self.know_blocks(
            instance, self._parts.jobs.observe(
                uuid, self._parts.options.call_timeout), entries, starting)
        blocks = self.judge_blocks(known)
        if known.snapshots:
            self._made_busy.add(uuid)
        if blocks.refuse:
            self._make_busy(instance)
        if blocks.verdict is Verdict.END_BLOCK_JOBS:
            blocks = block_settlement.BlockSettlement(
                self._parts, instance, timeout).settle(known, blocks)
        if blocks.verdict is not Verdict.HOLD and uuid in self._made_busy:
            self._parts.host.end_task(uuid, facts.SNAPSHOT_STATES)
            self._made_busy.discard(uuid)
        return ruling if blocks.verdict is Verdict.LEAVE else blocks

    def keep_busy(self, uuid):
        """Let the API refuse actions on an instance until it is settled.

        :param uuid: the instance's UUID
        """
        try:
            instance = self._parts.host.instance(uuid)
            if instance is not None and (
                    instance.host == self._parts.host.name):
                self._make_busy(instance)
        except Exception as e:
            # the next attempt to settle it does
            LOG.warning('The API does not refuse actions on it yet: %s', e,
                        instance_uuid=uuid)

    def _make_busy(self, instance):
        if instance.task_state is None:
            self._parts.host.make_busy(instance, facts.IMAGE_SNAPSHOT)
            self._made_busy.add(instance.uuid)

    def _after(self, uuid, instance, running, entries):
        """Wait for the operations that run, if there is something to end."""
        left = ['%s of %s' % (entry.operation, entry.subject)
                for entry in entries if entry.subject not in running]
        if uuid in self._made_busy:
            left.append('its task state')
        if not left:
            return None
        if instance is not None and instance.host == self._parts.host.name:
            self._make_busy(instance)
        return block_verdict.hold(
            '%s has not ended, and another operation has to end first' %
            left[0])


class _Attempt(object):
    """One attempt to settle one instance."""

    _instance: typing.Any
    _known: facts.Facts

    def __init__(self, parts, peers, know, uuid, timeout, starting):
        self._parts = parts
        self._peers = peers
        self._know = know
        self._uuid = uuid
        self._timeout = timeout
        self._starting = starting
        self._entry = None
        #: why the operator's word was refused, if there was one
        self.refusal = ''

    @property
    def known(self):
        """The facts as far as they were gathered, or None."""
        return getattr(self, '_known', None)

    def settle(self, observation):
        self._entry = self._parts.journal.entry(self._uuid)
        if not self._read_instance():
            return self._abandon()
        ruling = self._judge(observation or self._observe())
        if ruling.refuse and not self._known.moved:
            self._parts.host.make_busy(self._instance)
        if ruling.verdict is Verdict.ABORT:
            ruling = self._abort()
        if ruling.verdict is Verdict.ASK:
            ruling = self._ask()
        if ruling.verdict is Verdict.HOLD:
            ruling = self._heed_operator(ruling)
        if ruling.verdict is Verdict.ADOPT:
            self._parts.host.restore_vm_state(
                self._instance, self._entry.vm_state)
        if ruling.verdict in ENDINGS:
            ruling = self._end(ruling)
        return ruling

    def _heed_operator(self, ruling):
        """Let an operator decide what the facts do not.

        :param ruling: the verdict HOLD of the facts
        """
        word = self._parts.words.read(self._uuid)
        if word is None:
            return ruling
        known = self._known
        told = release.judge(
            known, word.keep, fenced=known.peer is facts.Peer.UNKNOWN and
            self._parts.host.is_fenced(known.destination),
            has_disk=self._parts.host.has_disk(self._instance))
        said = {'keep': word.keep.value, 'by': word.by, 'why': told.reason}
        if told.verdict is Verdict.HOLD:
            self.refusal = told.reason
            LOG.warning('The word of %(by)s to keep the guest at the '
                        '%(keep)s is refused: %(why)s.', said,
                        instance=self._instance)
            return ruling
        LOG.warning('By the word of %(by)s: %(why)s.', said,
                    instance=self._instance)
        return told

    def _abandon(self):
        self._parts.migrations.abandon(self._migrations_to_end())
        self._parts.journal.end(self._uuid)
        return GONE

    def _migrations_to_end(self):
        return self._parts.host.migrations_to_end(
            self._uuid, self._entry.migration if self._entry else None)

    def _read_instance(self):
        self._instance = self._parts.host.instance(self._uuid)
        return self._instance is not None

    def _observe(self):
        return self._parts.jobs.observe(
            self._uuid, self._parts.options.call_timeout)

    def _judge(self, observation):
        self._known = self._know(
            self._instance, observation,
            self._parts.host.open_records(self._uuid), self._entry)
        if self._known.job is facts.Job.OUTGOING and self._known.destination:
            self._known = dataclasses.replace(
                self._known,
                reachable=self._peers.reachable(self._known.destination))
        return self._ruling()

    def _ruling(self):
        ruling = verdict.judge(self._known)
        LOG.debug('%(verdict)s: %(reason)s. Facts: %(facts)s',
                  {'verdict': ruling.verdict.value, 'reason': ruling.reason,
                   'facts': self._known}, instance=self._instance)
        return ruling

    def _abort(self):
        self._parts.actions.notify_abort(self._instance, 'start')
        observation = self._parts.jobs.abort(self._uuid, self._timeout)
        if observation.job is not None and not observation.job.active:
            self._parts.actions.notify_abort(self._instance, 'end')
        if not self._read_instance():
            return self._abandon()
        ruling = self._judge(observation)
        if ruling.verdict is Verdict.ABORT:
            metrics.count('abort_timeouts_total')
            return verdict.Ruling(
                Verdict.HOLD, 'its migration job is still there %d s after '
                'it was aborted' % self._timeout, refuse=True)
        return ruling

    def _ask(self):
        asked = [self._ask_one(destination)
                 for destination in self._known.destinations]
        there = [known for known in asked
                 if known.peer is not facts.Peer.ABSENT or known.peer_works]
        self._known = (there or asked)[-1]
        if len(there) > 1:
            self._known = dataclasses.replace(
                self._known, peer=facts.Peer.UNKNOWN, peer_said='; '.join(
                    '%s: %s' % (known.asked, known.peer.value)
                    for known in there))
        return self._ruling()

    def _ask_one(self, destination):
        peer, said = self._peers.where(self._instance, destination)
        return dataclasses.replace(
            self._known, asked=destination, peer=peer, peer_said=said,
            peer_works=self._parts.host.works_at(self._uuid, destination))

    def _end(self, ruling):
        """Carry a verdict out that ends the migration."""
        former = self._instance.task_state
        if ruling.verdict is not Verdict.CLOSE:
            if former not in (None, facts.MIGRATING) and not self._starting:
                return verdict.Ruling(
                    Verdict.HOLD, '%s; the task "%s" has to end first' % (
                        ruling.reason, former))
            self._parts.host.take_over(self._instance)
        with self._parts.actions.settlement(self._uuid, ruling) as context:
            self._carry_out(context, ruling.verdict)
        self._parts.journal.end(self._uuid)
        if former not in (None, facts.MIGRATING) and not self._known.moved:
            self._parts.host.give_back_task(self._uuid, former)
        return ruling

    def _carry_out(self, context, what):
        instance, entry = self._instance, self._entry
        migrations = self._migrations_to_end()
        destination = self._known.destination
        if what is Verdict.CLOSE:
            self._parts.migrations.close(
                context, instance, entry, migrations, instance.host)
        elif what is Verdict.FINISH:
            self._parts.host.restore_vm_state(instance, self._vm_state(False))
            self._parts.migrations.finish(
                context, instance, entry, migrations, destination)
        else:
            self._undo_pause()
            if what is Verdict.UNDO:
                self._parts.migrations.undo(context, instance, migrations)
            else:
                self._parts.migrations.roll_back(
                    context, instance, entry, migrations, destination,
                    self._live_xml(),
                    answers=self._known.peer is not facts.Peer.UNKNOWN)
            self._parts.host.restore_vm_state(instance, self._vm_state(True))

    def _vm_state(self, stays):
        """What the vm_state was before an error took its place.

        Nova migrates only what is active or paused.
        """
        if self._entry is not None:
            return self._entry.vm_state
        if not stays:
            return None
        if self._known.observation.state == libvirt_jobs.State.RUNNING:
            return facts.ACTIVE
        if self._known.observation.state == libvirt_jobs.State.PAUSED:
            return facts.PAUSED
        return None

    def _undo_pause(self):
        """Let the guest run, or not, as Nova's record says."""
        state = self._known.observation.state
        timeout = self._parts.options.call_timeout
        paused = facts.PAUSED in (
            self._instance.vm_state,
            self._entry.vm_state if self._entry is not None else None)
        if paused and state == libvirt_jobs.State.RUNNING:
            # an aborted migration resumes the guest, whoever had paused it
            self._parts.jobs.pause(self._uuid, timeout)
        elif not paused and self._known.guest is facts.Guest.SUSPENDED:
            self._parts.jobs.resume(self._uuid, timeout)

    def _live_xml(self):
        if self._known.guest in (facts.Guest.HERE, facts.Guest.SUSPENDED):
            return self._parts.jobs.xml(
                self._uuid, self._parts.options.call_timeout)
        return None
