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

"""Ends block operations of Nova for the services that wait for them.

Glance waits for an image, Cinder for a volume or for a volume's snapshot.
Every step can be made again, since nova-compute can die between any two.
"""

import time
import traceback

from nova.compute import utils as compute_utils
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.objects import fields
from oslo_config import cfg
from oslo_log import log as logging
from oslo_serialization import jsonutils

from nova_migration_guard import journal
from nova_migration_guard.nova_host import images
from nova_migration_guard.nova_host import plan as plans
from nova_migration_guard.nova_host import volumes as nova_volumes
from nova_migration_guard import seams

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

# How often, and for how many seconds, Cinder is asked whether it has taken
# note of a snapshot. Its drivers look at its status every second.
_ASK_INTERVAL = 0.5
_TAKES_NOTE = 3


def _entry(operation, context, instance, host, subject, **known):
    return journal.BlockOperation(
        operation=operation, phase=journal.BEGUN, instance=instance.uuid,
        host=host, subject=subject, request_id=context.request_id or '',
        begun=time.time(), **known)


class BlockOperations(object):
    """The block operations of one nova-compute.

    :param manager: a ``nova.compute.manager.ComputeManager`` whose driver is
        the libvirt driver
    """

    def __init__(self, manager):
        self._manager = manager
        self._images = images.Images(manager)
        self._volumes = nova_volumes.Volumes(manager)
        self.delete_unfinished_images = self._images.delete_unfinished

    @property
    def snapshot_folder(self):
        """The folder for images of live snapshots."""
        return CONF.libvirt.snapshots_directory

    # ---- what the journal needs

    def live_snapshot(self, context, instance, image_id):
        """Make the entry of a live snapshot that begins.

        :param context: of the user's request
        :param instance: a ``nova.objects.Instance``
        :param image_id: the image's ID
        :returns: a :class:`nova_migration_guard.journal.BlockOperation`
        """
        return _entry(journal.LIVE_SNAPSHOT, context, instance,
                      self._manager.host, image_id)

    def volume_swap(self, context, instance, bdm, old_volume_id, new_volume,
                    resize_to, new_attachment_id, is_cinder_migration):
        """Make the entry of a volume swap that begins.

        The arguments are those of ``ComputeManager._swap_volume``.

        :returns: a :class:`nova_migration_guard.journal.BlockOperation`
        """
        return _entry(
            journal.VOLUME_SWAP, context, instance, self._manager.host,
            old_volume_id, details={
                'new_volume': new_volume['id'], 'resize_to': resize_to,
                'old_attachment': bdm.attachment_id,
                'new_attachment': new_attachment_id,
                'cinder_migration': bool(is_cinder_migration)})

    def volume_snapshot_create(self, context, instance, volume_id,
                               create_info):
        """Make the entry of an assisted volume snapshot that begins.

        The arguments are those of ``LibvirtDriver.volume_snapshot_create``.

        :returns: a :class:`nova_migration_guard.journal.BlockOperation`
        """
        return _entry(
            journal.VOLUME_SNAPSHOT_CREATE, context, instance,
            self._manager.host, create_info['snapshot_id'],
            target=create_info['new_file'], details={'volume': volume_id})

    def volume_snapshot_delete(self, context, instance, volume_id,
                               snapshot_id, delete_info):
        """Make the entry of an assisted snapshot that begins to be deleted.

        The arguments are those of ``LibvirtDriver.volume_snapshot_delete``.

        :returns: a :class:`nova_migration_guard.journal.BlockOperation`
        """
        return _entry(
            journal.VOLUME_SNAPSHOT_DELETE, context, instance,
            self._manager.host, snapshot_id, details={
                'volume': volume_id,
                'merged': delete_info.get('file_to_merge'),
                'merge_target': delete_info.get('merge_target_file')})

    def left_behind(self, entry):
        """Tell what an operation that failed has left at a service.

        :param entry: a :class:`nova_migration_guard.journal.BlockOperation`
        :returns: a description, or None
        :raises Exception: when the service does not say
        """
        if entry.operation != journal.VOLUME_SWAP:
            return None
        attachment = entry.details['new_attachment']
        if attachment and self._has_attachment(attachment):
            return 'an attachment of volume %s' % entry.details['new_volume']
        return None

    def _may_be_connected(self, attachment_id):
        """Tell whether a volume may still be connected to this host.

        It is disconnected before its attachment ends. After that its address
        can be another volume's, which must not be touched.

        :param attachment_id: None for one from before Cinder's API 3.44
        """
        return attachment_id is None or self._has_attachment(attachment_id)

    def _has_attachment(self, attachment_id):
        try:
            self._manager.volume_api.attachment_get(
                nova_context.get_admin_context(), attachment_id)
        except exception.VolumeAttachmentNotFound:
            return False
        return True

    # ---- the ends

    def finish(self, instance, entry):
        """Tell the service that an operation was done.

        :param instance: a ``nova.objects.Instance``
        :param entry: a :class:`nova_migration_guard.journal.BlockOperation`
        :raises Exception: what Nova or the service raises
        """
        context = nova_context.get_admin_context()
        if entry.operation == journal.VOLUME_SWAP:
            self._finish_swap(context, instance, entry)
        elif entry.operation == journal.VOLUME_SNAPSHOT_CREATE:
            # Cinder ends what is "creating"
            self._report_snapshot(context, entry, 'creating')
            self._wait_for_cinder(context, entry)
            self._refresh(context, instance, entry)
        elif entry.operation == journal.VOLUME_SNAPSHOT_DELETE:
            self._report_snapshot(context, entry, 'deleting')
            self._refresh(context, instance, entry)

    def undo(self, instance, entry):
        """Tell the service that an operation was not done.

        :param instance: a ``nova.objects.Instance``, or None when it is
            deleted
        :param entry: a :class:`nova_migration_guard.journal.BlockOperation`
        :raises Exception: what Nova or the service raises
        """
        context = nova_context.get_admin_context()
        if entry.operation == journal.LIVE_SNAPSHOT:
            self._images.delete(entry.subject)
        elif entry.operation == journal.VOLUME_SWAP:
            self._undo_swap(context, instance, entry)
        elif entry.operation == journal.VOLUME_SNAPSHOT_CREATE:
            self._report_snapshot(context, entry, 'error')
        elif entry.operation == journal.VOLUME_SNAPSHOT_DELETE:
            self._report_snapshot(context, entry, 'error_deleting')

    # ---- volumes

    def _disconnect(self, context, instance, connection_info, volume_id):
        if not connection_info:
            return
        try:
            self._manager.driver._disconnect_volume(
                context, connection_info, instance)
        except Exception as e:
            # Cinder ends the export; what is left is a device of this host
            LOG.warning('Volume %s could not be disconnected from this host: '
                        '%s', volume_id, e, instance=instance)

    def _end_attachment(self, context, instance, attachment_id, volume_id):
        """End an attachment to this host, of either kind."""
        if attachment_id is not None:
            self._volumes.delete_attachment(context, attachment_id)
        elif instance is not None:
            # attached before Cinder's API 3.44
            self._if_there(
                self._manager.volume_api.terminate_connection, context,
                volume_id, self._manager.driver.get_volume_connector(instance))

    @staticmethod
    def _if_there(call, context, volume_id, *args):
        """Tell Cinder something about a volume that may be deleted."""
        try:
            call(context, volume_id, *args)
        except exception.VolumeNotFound:
            LOG.debug('Volume %s is deleted.', volume_id)

    def _complete_migration(self, context, entry, error):
        """Tell Cinder that the migration of a volume has ended.

        :returns: the ID that the volume has now
        """
        details = entry.details
        new = details['new_volume']
        if details['old_attachment'] and not details['cinder_migration']:
            # the swap was not Cinder's
            return new
        volumes = self._manager.volume_api
        try:
            old = volumes.get(context, entry.subject)
            if details['cinder_migration'] and (
                    old.get('migration_status') != 'migrating'):
                # Cinder has ended it, and given the volume its old ID
                return entry.subject
            if error:
                # Nova's client has no error of its own for this below
                volumes.get(context, new)
            return volumes.migrate_volume_completion(
                context, entry.subject, new, error=error)['save_volume_id']
        except exception.VolumeNotFound:
            return entry.subject if details['cinder_migration'] else new

    def _undo_swap(self, context, instance, entry):
        details, volumes = entry.details, self._manager.volume_api
        new = details['new_volume']
        if instance is not None and self._may_be_connected(
                details['new_attachment']):
            self._disconnect(context, instance,
                             details.get('new_connection'), new)
        self._if_there(volumes.roll_detaching, context, entry.subject)
        if details['new_attachment'] is None:
            self._if_there(volumes.unreserve_volume, context, new)
        self._end_attachment(context, instance, details['new_attachment'],
                             new)
        try:
            self._complete_migration(context, entry, error=True)
        except exception.InvalidInput as e:
            # it would be the same at every attempt
            LOG.warning('Cinder does not take the end of the migration of '
                        'volume %s: %s', entry.subject, e)
        if instance is not None:
            self._notify_of_error(context, instance, entry)

    def _notify_of_error(self, context, instance, entry):
        try:
            # the notification tells where the error was raised
            raise exception.VolumeRebaseFailed(
                reason='nova-compute was restarted')
        except exception.VolumeRebaseFailed as e:
            notify = compute_utils.notify_about_volume_swap
            # tb: to 21.x
            where = ({'tb': traceback.format_exc()}
                     if 'tb' in seams.signature_of(notify) else {})
            notify(context, instance, self._manager.host,
                   fields.NotificationPhase.ERROR, entry.subject,
                   entry.details['new_volume'], e, **where)

    def _finish_swap(self, context, instance, entry):
        details, volumes = entry.details, self._manager.volume_api
        new = details['new_volume']
        if self._may_be_connected(details['old_attachment']):
            self._disconnect(context, instance, details.get('old_connection'),
                             entry.subject)
        if details['new_attachment']:
            volumes.attachment_complete(context, details['new_attachment'])
        self._end_attachment(context, instance, details['old_attachment'],
                             entry.subject)
        self._save_swapped(context, instance, entry, self._complete_migration(
            context, entry, error=False))
        compute_utils.notify_about_volume_swap(
            context, instance, self._manager.host,
            fields.NotificationPhase.END, entry.subject, new)

    @staticmethod
    def _save_swapped(context, instance, entry, volume_id):
        """Let the block device mapping name the volume that is used."""
        details = entry.details
        for bdm in objects.BlockDeviceMappingList.get_by_instance_uuid(
                context, instance.uuid):
            if bdm.volume_id != entry.subject:
                continue
            connection = dict(details['new_connection'], serial=volume_id,
                              volume_id=volume_id)
            if 'data' in connection:
                connection['data'] = dict(connection['data'],
                                          volume_id=volume_id)
            bdm.volume_id = volume_id
            bdm.connection_info = jsonutils.dumps(connection)
            bdm.source_type = bdm.destination_type = 'volume'
            bdm.snapshot_id = None
            if details['resize_to']:
                bdm.volume_size = details['resize_to']
            if details['new_attachment']:
                bdm.attachment_id = details['new_attachment']
            bdm.save()

    # ---- volumes' snapshots

    def _report_snapshot(self, context, entry, status):
        """Tell Cinder how far an assisted snapshot is.

        The driver's own way hides that Cinder did not hear it.
        """
        try:
            self._manager.volume_api.update_snapshot_status(
                context, entry.subject, status)
        except (exception.SnapshotNotFound, exception.InvalidInput) as e:
            # Cinder has ended it, by itself or since it was told before
            LOG.info('Cinder does not take the status %s of snapshot %s: %s',
                     status, entry.subject, e)

    def _wait_for_cinder(self, context, entry):
        """Wait until Cinder knows that the volume has another file.

        Before that it says that the guest is to be started with the former.
        """
        deadline = time.monotonic() + _TAKES_NOTE
        while True:
            try:
                snapshot = self._manager.volume_api.get_snapshot(
                    context, entry.subject)
            except exception.SnapshotNotFound:
                return
            if snapshot['status'] != 'creating':
                return
            if time.monotonic() > deadline:
                raise plans.Unsettled('Cinder has not taken note of snapshot '
                                      '%s' % entry.subject)
            time.sleep(_ASK_INTERVAL)

    def _refresh(self, context, instance, entry):
        """Let Nova's record say what Cinder says of a volume."""
        self._manager.driver._volume_refresh_connection_info(
            context, instance, entry.details['volume'])
