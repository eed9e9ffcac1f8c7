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

from keystoneauth1 import exceptions as auth_errors
from keystoneauth1 import loading
from nova.compute import utils as compute_utils
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.objects import fields
from oslo_config import cfg
from oslo_log import log as logging
from oslo_serialization import jsonutils

from nova_migration_guard import compat
from nova_migration_guard import journal

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

# Statuses of an image that nobody uploads any more.
_UNFINISHED = ('queued', 'saving')

# The sections of nova.conf with the credentials of Nova's own user, best
# first; since Train no nova-compute starts without the second.
_CREDENTIALS = ('service_user', 'placement')


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
            self._end_snapshot(context, instance, entry, 'creating', True)
        elif entry.operation == journal.VOLUME_SNAPSHOT_DELETE:
            self._end_snapshot(context, instance, entry, 'deleting', True)

    def undo(self, instance, entry):
        """Tell the service that an operation was not done.

        :param instance: a ``nova.objects.Instance``, or None when it is
            deleted
        :param entry: a :class:`nova_migration_guard.journal.BlockOperation`
        :raises Exception: what Nova or the service raises
        """
        context = nova_context.get_admin_context()
        if entry.operation == journal.LIVE_SNAPSHOT:
            self._delete_image(entry.subject)
        elif entry.operation == journal.VOLUME_SWAP:
            self._undo_swap(context, instance, entry)
        elif entry.operation == journal.VOLUME_SNAPSHOT_CREATE:
            self._end_snapshot(context, instance, entry, 'error', False)
        elif entry.operation == journal.VOLUME_SNAPSHOT_DELETE:
            self._end_snapshot(context, instance, entry, 'error_deleting',
                               False)

    # ---- images

    @staticmethod
    def _image_context():
        """A context with which Glance lets Nova's own user in.

        The one of the user's request is gone with the process.
        """
        auth = None
        for section in _CREDENTIALS:
            auth = auth or loading.load_auth_from_conf_options(CONF, section)
        return nova_context.RequestContext(is_admin=True,
                                           user_auth_plugin=auth)

    def _delete_image(self, image_id):
        """Delete an image that was not finished, as Nova does on an error."""
        context = self._image_context()
        try:
            image = self._manager.image_api.get(context, image_id)
            if image['status'] in _UNFINISHED:
                self._manager.image_api.delete(context, image_id)
        except exception.ImageNotFound:
            LOG.debug('Image %s is deleted already.', image_id)
        except (exception.ImageNotAuthorized, exception.Forbidden,
                auth_errors.Unauthorized) as e:
            # it would be the same at every attempt
            LOG.error('Image %s will not be finished, and Glance does not let '
                      'this host delete it: %s', image_id, e)

    def delete_unfinished_images(self, instance):
        """Delete the images of an instance that are not finished.

        :param instance: a ``nova.objects.Instance`` of which nobody makes an
            image
        :raises Exception: what Glance raises
        """
        context = self._image_context()
        for status in _UNFINISHED:
            for image in self._manager.image_api.get_all(context, filters={
                    'instance_uuid': instance.uuid, 'status': status}):
                properties = image.get('properties', {})
                if properties.get('instance_uuid') == instance.uuid and (
                        image['status'] == status):
                    self._delete_image(image['id'])

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
        volumes = self._manager.volume_api
        if attachment_id is not None:
            try:
                volumes.attachment_delete(context, attachment_id)
            except exception.VolumeAttachmentNotFound:
                LOG.debug('Attachment %s is deleted already.', attachment_id)
        elif instance is not None:
            # attached before Cinder's API 3.44
            volumes.terminate_connection(
                context, volume_id,
                self._manager.driver.get_volume_connector(instance))

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
            return volumes.migrate_volume_completion(
                context, entry.subject, new, error=error)['save_volume_id']
        except exception.VolumeNotFound:
            return entry.subject if details['cinder_migration'] else new

    def _undo_swap(self, context, instance, entry):
        details, volumes = entry.details, self._manager.volume_api
        new = details['new_volume']
        if instance is not None:
            self._disconnect(context, instance,
                             details.get('new_connection'), new)
        try:
            volumes.roll_detaching(context, entry.subject)
        except exception.VolumeNotFound:
            LOG.debug('Volume %s is deleted.', entry.subject)
        if details['new_attachment'] is None:
            volumes.unreserve_volume(context, new)
        self._end_attachment(context, instance, details['new_attachment'],
                             new)
        self._complete_migration(context, entry, error=True)
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
                     if 'tb' in compat.signature_of(notify) else {})
            notify(context, instance, self._manager.host,
                   fields.NotificationPhase.ERROR, entry.subject,
                   entry.details['new_volume'], e, **where)

    def _finish_swap(self, context, instance, entry):
        details, volumes = entry.details, self._manager.volume_api
        new = details['new_volume']
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

    def _end_snapshot(self, context, instance, entry, status, changed):
        """Report an assisted snapshot.

        :param changed: whether the volume consists of other files now
        """
        driver = self._manager.driver
        driver._volume_snapshot_update_status(context, entry.subject, status)
        if changed:
            driver._volume_refresh_connection_info(
                context, instance, entry.details['volume'])
