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
import wrapt

from nova_migration_guard import domain_xml
from nova_migration_guard import journal as journals

LOG = logging.getLogger(__name__)


class Refused(Exception):
    """An operation does not start."""


class _WatchedDisk(wrapt.ObjectProxy):
    """Nova's disk of a guest, which says before the guest uses the copy."""

    def __init__(self, disk, before_pivot):
        super(_WatchedDisk, self).__init__(disk)
        self._self_before_pivot = before_pivot

    def abort_job(self, *args, **kwargs):
        if kwargs.get('pivot') or args[1:2] == (True,):
            self._self_before_pivot()
        return self.__wrapped__.abort_job(*args, **kwargs)


class _WatchedGuest(wrapt.ObjectProxy):
    """Nova's guest, whose disks say before the guest uses a copy."""

    def __init__(self, guest, before_pivot):
        super(_WatchedGuest, self).__init__(guest)
        self._self_before_pivot = before_pivot

    def get_block_device(self, disk):
        return _WatchedDisk(self.__wrapped__.get_block_device(disk),
                            self._self_before_pivot)


class BlockTracking(object):
    """The block operations of one nova-compute.

    :param parts: a :class:`nova_migration_guard.parts.Parts`
    :param hold: a callable that holds an instance: (uuid, reason)
    """

    def __init__(self, parts, hold):
        self._parts = parts
        self._hold = hold
        # {(instance UUID, subject): operation} of those that run now
        self._running = {}
        # {(instance UUID, target name): (volume, connection_info of the new
        # one)} of the swaps among them. Nova adds to the latter when it
        # connects the volume.
        self._swapped = {}

    def runs_for(self, uuid):
        """Tell whether an operation of this process works on an instance.

        :param uuid: the instance's UUID
        """
        return any(key[0] == uuid for key in list(self._running))

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
                    undo()
                self._failed(entry.instance, entry.subject, e)
                raise
            self._end(entry.instance, entry.subject)

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
            self._end(instance.uuid, old_volume_id)
            return result

    def swap_begins(self, *args):
        """Write down a volume swap, of which Cinder is about to be told.

        One that must be written down and cannot be ends at its next step,
        where Nova tells Cinder that it has failed.

        :param args: those of ``ComputeManager._swap_volume``
        """
        entry = self._parts.blocks.volume_swap(*args)
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
        uuid, subject = instance.uuid, old_connection['serial']
        self._swapped[uuid, dev] = subject, new_connection
        self._advance(
            uuid, subject, journals.CONNECTING, disk=dev,
            details=self._with(uuid, subject, old_connection=old_connection,
                               new_connection=new_connection))

    def _with(self, uuid, subject, **details):
        for entry in self._entries(uuid):
            if entry.subject == subject:
                return dict(entry.details, **details)
        return details

    def swap_copies(self, guest, dev, target):
        """Write down that libvirt is about to be asked to copy a volume.

        :param guest: Nova's guest
        :param dev: the target name
        :param target: name of the file, device or network volume
        :returns: the guest to go on with
        :raises Refused: when it must be written and cannot be
        """
        uuid = guest.uuid
        subject, new_connection = self._swapped.pop((uuid, dev), (None, None))
        if subject is None:
            return guest
        disks, xml = self._definition(uuid)
        source = next((disk.source for disk in disks if disk.dev == dev),
                      None)
        self._advance(
            uuid, subject, journals.COPYING, target=target, domain_xml=xml,
            details=self._with(uuid, subject, source=source,
                               new_connection=new_connection))
        return _WatchedGuest(guest, lambda: self._advance(
            uuid, subject, journals.PIVOTING))

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
            disks, xml = self._definition(entry.instance)
            self._advance(
                entry.instance, entry.subject, journals.COPYING,
                domain_xml=xml, disk=next(
                    (disk.dev for disk in disks
                     if disk.serial == entry.details['volume']), None))
            return run()
