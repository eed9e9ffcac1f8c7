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

"""The block operations of this nova-compute, while it lives.

Each is written down before libvirt is asked for anything, and crossed out
when Nova has ended it. One that Nova has left half done is held, and the
settler goes on with it, as if nova-compute had died there.
"""

import contextlib

from oslo_log import log as logging

from nova_migration_guard import block_settlement
from nova_migration_guard import block_verdict
from nova_migration_guard import domain_xml
from nova_migration_guard import journal as journals
from nova_migration_guard import swaps

LOG = logging.getLogger(__name__)


class Refused(Exception):
    """An operation does not start."""


class BlockTracking(object):
    """The block operations of one nova-compute.

    :param parts: a :class:`nova_migration_guard.parts.Parts`
    :param hold: a callable that holds an instance: (uuid, reason)
    :param keep_busy: a callable that lets the API refuse actions on one, where
        no task state does: (uuid)
    """

    def __init__(self, parts, hold, keep_busy):
        self._parts = parts
        self._hold = hold
        self._keep_busy = keep_busy
        # {(instance UUID, subject): operation} of those that run now
        self._running = {}
        # {(instance UUID, target name): the swap among them}
        self._swaps = {}

    def running(self, uuid):
        """The subjects of this process's operations on an instance.

        :param uuid: the instance's UUID
        """
        return {subject for instance, subject in list(self._running)
                if instance == uuid}

    # ---- writing down

    def _write(self, instance_uuid, what, write):
        """Write to the journal.

        :param write: a callable that does it; returns whether it could
        :raises Refused: when it fails and must not
        """
        reason = 'it is not in the journal'
        try:
            if write() is not False:
                return
        except Exception as e:
            reason = str(e)
        required = (self._parts.enforces and
                    self._parts.options.journal_required)
        log = LOG.error if required else LOG.warning
        log('The %(what)s %(does)s: %(error)s', {
            'what': what, 'does': 'does not begin' if required else
            'goes on without the journal', 'error': reason},
            instance_uuid=instance_uuid)
        if required:
            raise Refused('the %s does not begin: %s' % (what, reason))

    def _advance(self, uuid, subject, phase, **changes):
        self._write(uuid, self._running.get((uuid, subject), 'operation'),
                    lambda: self._parts.journal.advance(
                        uuid, phase, subject, **changes))

    def _definition(self, uuid):
        """The domain's disks, and its definition for the journal."""
        timeout = self._parts.options.call_timeout
        try:
            return (
                domain_xml.disks(self._parts.jobs.xml(uuid, timeout)),
                self._parts.jobs.xml(uuid, timeout, inactive=True,
                                     secure=True))
        except Exception as e:
            LOG.warning("The domain's definition is not in the journal: %s",
                        e, instance_uuid=uuid)
            return (), None

    @contextlib.contextmanager
    def _operation(self, entry, undo=None):
        """Run an operation, and look after what it leaves.

        :param undo: a callable that tells the service of one that is
            refused, where Nova's caller does not
        """
        with self._runs(entry.instance, entry.subject, entry.operation):
            try:
                self._write(entry.instance, entry.operation,
                            lambda: self._parts.journal.begin(entry))
                yield
            except Exception as e:
                if isinstance(e, Refused) and undo:
                    self._undo(entry, undo)
                self._failed(entry.instance, entry.subject, e)
                raise
            self._end(entry.instance, entry.subject)

    @staticmethod
    def _undo(entry, undo):
        try:
            undo()
        except Exception as e:
            # as Nova does: the service's own wait is bounded
            LOG.error('That the %s of %s is refused cannot be told: %s',
                      entry.operation, entry.subject, e,
                      instance_uuid=entry.instance)

    @contextlib.contextmanager
    def _runs(self, uuid, subject, operation):
        self._running[uuid, subject] = operation
        try:
            yield
        finally:
            self._running.pop((uuid, subject), None)

    def _failed(self, uuid, subject, error):
        """Hold an instance when Nova's own clean-up has left something."""
        entry = next((entry for entry in self._entries(uuid)
                      if entry.subject == subject), None)
        if entry is None:
            return
        try:
            left = self._left_behind(entry)
        except Exception as e:
            left = 'something, perhaps: %s' % e
        if left and self._parts.enforces:
            self._hold(uuid, '%s failed (%s) and left %s' % (
                entry.operation, error, left))
            self._keep_busy(uuid)
        else:
            self._end(uuid, subject)

    def _entries(self, uuid):
        try:
            return self._parts.journal.block_operations(uuid)
        except journals.JournalError as e:
            LOG.error('%s', e, instance_uuid=uuid)
            return []

    def _left_behind(self, entry):
        seen = self._parts.jobs.observe(
            entry.instance, self._parts.options.call_timeout)
        if seen.block_jobs is None:
            return 'something, perhaps: %s' % seen.trouble
        if any(job.disk == entry.disk for job in seen.block_jobs):
            return 'a block job'
        if seen.present and seen.persistent is False:
            return 'a domain that is not defined'
        return self._parts.blocks.left_behind(entry)

    def _end(self, uuid, subject):
        try:
            self._parts.journal.end(uuid, subject)
        except journals.JournalError as e:
            # the next start finds that nothing is left to be done
            LOG.error('%s', e, instance_uuid=uuid)

    # ---- live snapshots

    def snapshot(self, context, instance, image_id, run):
        """Run Nova's making of an image.

        :param run: a callable without arguments
        :returns: what it returns
        """
        with self._operation(self._parts.blocks.live_snapshot(
                context, instance, image_id)):
            return run()

    def copies_into(self, instance, disk, path):
        """Write down the file into which a live snapshot is about to copy.

        :param disk: the target name, or the file, of the disk
        :param path: of the image that is made; the copy is beside it
        :raises Refused: when it must be written and cannot be
        """
        subject = self._snapshot_of(instance.uuid)
        if subject is None:
            return
        disks, xml = self._definition(instance.uuid)
        dev = next((known.dev for known in disks
                    if disk in (known.dev, known.source)), disk)
        self._advance(instance.uuid, subject, journals.COPYING, disk=dev,
                      target=path, domain_xml=xml)

    def freezes(self, instance):
        """Write down that file systems are about to be frozen.

        :param instance: a ``nova.objects.Instance``
        :raises Refused: when it must be written and cannot be
        """
        subject = self._snapshot_of(instance.uuid)
        if subject is not None:
            self._advance(instance.uuid, subject, journals.FREEZING)

    def _snapshot_of(self, uuid):
        return next((subject for (instance, subject), operation
                     in list(self._running.items())
                     if instance == uuid and
                     operation == journals.LIVE_SNAPSHOT), None)

    # ---- volume swaps

    def swap(self, instance, old_volume_id, run):
        """Run Nova's swap of a volume to its end.

        :param old_volume_id: the ID of the volume that is swapped out
        :param run: a callable without arguments
        :returns: what it returns
        """
        with self._runs(instance.uuid, old_volume_id, journals.VOLUME_SWAP):
            try:
                result = run()
            except Exception as e:
                self._failed(instance.uuid, old_volume_id, e)
                raise
            finally:
                self._forget_swap(instance.uuid, old_volume_id)
            self._end(instance.uuid, old_volume_id)
            return result

    def _forget_swap(self, uuid, subject):
        for key, swap in list(self._swaps.items()):
            if (key[0], swap.subject) == (uuid, subject):
                self._swaps.pop(key, None)

    def swap_begins(self, dev, *args):
        """Write down a volume swap, of which Cinder is about to be told.

        One that must be written down and cannot be ends at its next step,
        where Nova tells Cinder that it has failed.

        :param dev: the target name
        :param args: those of ``ComputeManager._swap_volume``
        """
        entry = self._parts.blocks.volume_swap(*args)
        self._swaps[entry.instance, dev] = swaps.Swap(entry.subject)
        try:
            self._write(entry.instance, entry.operation,
                        lambda: self._parts.journal.begin(entry))
        except Refused as e:
            LOG.debug('%s', e, instance_uuid=entry.instance)

    def swap_connects(self, instance, dev, old_connection, new_connection):
        """Write down that the new volume is about to be connected.

        :param dev: the target name
        :param old_connection: connection_info of the old volume
        :param new_connection: connection_info of the new volume
        :raises Refused: when it must be written and cannot be
        """
        uuid, swap = instance.uuid, self._swaps.get((instance.uuid, dev))
        if swap is None:
            return
        swap.new_connection = new_connection
        self._advance(
            uuid, swap.subject, journals.CONNECTING, disk=dev,
            details=self._with(
                uuid, swap.subject, old_connection=old_connection,
                new_connection=new_connection))

    def _with(self, uuid, subject, **details):
        for entry in self._entries(uuid):
            if entry.subject == subject:
                return dict(entry.details, **details)
        return details

    def swap_copies(self, guest, dev, target, run):
        """Run the part of a swap in which libvirt copies a volume.

        :param guest: Nova's guest
        :param dev: the target name
        :param target: name of the file, device or network volume
        :param run: a callable: (guest to go on with)
        :returns: what it returns
        :raises Refused: when it must be written and cannot be
        """
        uuid, swap = guest.uuid, self._swaps.get((guest.uuid, dev))
        if swap is None:
            return run(guest)
        disks, xml = self._definition(uuid)
        source = next((disk.source for disk in disks if disk.dev == dev),
                      None)
        self._advance(
            uuid, swap.subject, journals.COPYING, target=target,
            domain_xml=xml, details=self._with(
                uuid, swap.subject, source=source,
                new_connection=swap.new_connection))
        try:
            return run(swaps.WatchedGuest(guest, lambda: self._advance(
                uuid, swap.subject, journals.PIVOTING)))
        except Exception as e:
            if not self._took_over(uuid, swap.subject, e):
                raise

    def _took_over(self, uuid, subject, error):
        """Go on with a swap that has failed when the guest uses the copy.

        Nova would disconnect the volume that the guest uses, and Cinder
        delete it.
        """
        entry = next((entry for entry in self._entries(uuid)
                      if entry.subject == subject), None)
        if not self._parts.enforces or entry is None or (
                entry.phase != journals.PIVOTING):
            return False
        timeout = self._parts.options.call_timeout
        seen = self._parts.jobs.observe(uuid, timeout)
        if seen.block_jobs is None or any(
                job.disk == entry.disk for job in seen.block_jobs) or (
                    block_verdict.outcome(entry, seen.disks, True) is not
                    block_verdict.Outcome.DONE):
            return False
        LOG.error('The guest uses volume %s: the swap goes on, although it '
                  'has failed: %s', entry.details['new_volume'], error,
                  instance_uuid=uuid)
        try:
            block_settlement.take_over(self._parts, uuid, entry)
        except Exception as e:
            self._hold(uuid, 'the guest uses volume %s, and its definition '
                       'or size may not say so: %s' % (
                           entry.details['new_volume'], e))
        return True

    # ---- assisted volume snapshots

    def volume_snapshot_create(self, context, instance, volume_id,
                               create_info, run):
        """Run Nova's part of an assisted volume snapshot.

        :param run: a callable without arguments
        :returns: what it returns
        """
        if not create_info.get('snapshot_id') or (
                not create_info.get('new_file')):
            # Nova refuses it
            return run()
        return self._volume_snapshot(
            instance, self._parts.blocks.volume_snapshot_create(
                context, instance, volume_id, create_info), run)

    def volume_snapshot_delete(self, context, instance, volume_id,
                               snapshot_id, delete_info, run):
        """Run Nova's part of the deletion of an assisted volume snapshot.

        :param run: a callable without arguments
        :returns: what it returns
        """
        return self._volume_snapshot(
            instance, self._parts.blocks.volume_snapshot_delete(
                context, instance, volume_id, snapshot_id, delete_info), run)

    def _volume_snapshot(self, instance, entry, run):
        with self._operation(entry, undo=lambda: self._parts.blocks.undo(
                instance, entry)):
            # Nova leaves the definition alone
            disks, _ = self._definition(entry.instance)
            self._advance(
                entry.instance, entry.subject, journals.COPYING, disk=next(
                    (disk.dev for disk in disks
                     if disk.serial == entry.details['volume']), None))
            return run()
