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

"""What has to be known of a live migration to finish or to undo it.

It is written down in the journal when the migration begins. A migration that
began without the guard has left traces in Nova's database, in Cinder and on
both hosts; where they are not enough, nothing is guessed.
"""

import dataclasses
import time
import typing

from nova import objects
from nova.objects import base as objects_base
from nova.objects import migrate_data as migrate_data_obj
from nova.virt.libvirt import utils as libvirt_utils
from oslo_serialization import jsonutils

from nova_migration_guard import journal


class Unsettled(Exception):
    """A step could not be made now; says which and what is missing."""


@dataclasses.dataclass
class Plan(object):
    """What is known of a live migration that is to be ended.

    :ivar destination: the other host's name
    :ivar migrate_data: a ``nova.objects.migrate_data.LibvirtLiveMigrateData``
    :ivar source_bdms: a ``nova.objects.BlockDeviceMappingList`` from before
        the migration
    """
    destination: str
    block_migration: bool
    migrate_data: typing.Any
    source_bdms: typing.Any


def bdms(context, uuid):
    """Read the block device mappings of an instance.

    :param context: a request context
    :param uuid: the instance's UUID
    :returns: a ``nova.objects.BlockDeviceMappingList``
    """
    return objects.BlockDeviceMappingList.get_by_instance_uuid(context, uuid)


def volumes(mappings):
    """The block device mappings that are volumes of Cinder.

    :param mappings: a ``nova.objects.BlockDeviceMappingList``
    :returns: {volume ID: ``nova.objects.BlockDeviceMapping``}
    """
    return {bdm.volume_id: bdm for bdm in mappings if bdm.is_volume}


def _restored(primitive, context):
    try:
        restored = objects_base.NovaObject.obj_from_primitive(
            primitive, context)
    except Exception as e:
        # the class alone: the text may quote what was restored
        raise Unsettled(
            'the journal was written by a Nova whose objects this one does '
            'not know (%s)' % type(e).__name__)
    restored.obj_reset_changes(recursive=True)
    return restored


class Plans(object):
    """Makes the plans of one nova-compute's host.

    :param manager: a ``nova.compute.manager.ComputeManager`` whose driver is
        the libvirt driver
    """

    def __init__(self, manager):
        self._manager = manager

    def entry(self, context, instance, migration, destination,
              block_migration, migrate_data):
        """Describe a live migration that begins, for the journal.

        :param context: the request's context
        :param instance: a ``nova.objects.Instance``
        :param migration: a ``nova.objects.Migration``
        :param destination: the other host's name
        :param migrate_data: as the conductor sends it
        :returns: a :class:`nova_migration_guard.journal.Entry`
        """
        return journal.Entry(
            operation=journal.LIVE_MIGRATION, phase=journal.PREPARING,
            instance=instance.uuid, migration=migration.uuid,
            source=self._manager.host, destination=destination,
            vm_state=instance.vm_state, request_id=context.request_id,
            begun=time.time(), block_migration=bool(block_migration),
            migrate_data=migrate_data.obj_to_primitive(),
            source_bdms=bdms(context, instance.uuid).obj_to_primitive())

    @staticmethod
    def prepared(migrate_data, source_bdms):
        """What the journal keeps of a migration that has been prepared.

        :returns: fields of :class:`nova_migration_guard.journal.Entry`
        """
        changes = {'migrate_data': migrate_data.obj_to_primitive()}
        if source_bdms is not None:
            changes['source_bdms'] = source_bdms.obj_to_primitive()
        return changes

    def plan(self, context, instance, entry, migrations, destination):
        """What is known of a live migration that is to be ended.

        :param context: a request context
        :param instance: a ``nova.objects.Instance``
        :param entry: the journal's, or None
        :param migrations: its ``nova.objects.Migration`` objects, oldest
            first
        :param destination: the other host's name, for want of an entry
        :returns: a :class:`Plan`
        :raises Unsettled: when what is known is not enough
        """
        if entry is None:
            return self._rebuilt_plan(context, instance, migrations,
                                      destination)
        return Plan(entry.destination, entry.block_migration,
                    _restored(entry.migrate_data, context),
                    self.source_bdms(context, entry))

    @staticmethod
    def source_bdms(context, entry):
        """The journal's block device mappings.

        :param context: a request context
        :param entry: a :class:`nova_migration_guard.journal.Entry`
        :returns: a ``nova.objects.BlockDeviceMappingList``
        :raises Unsettled: when another release of Nova has written them
        """
        return _restored(entry.source_bdms, context)

    def _rebuilt_plan(self, context, instance, migrations, destination):
        """What Nova's database, Placement and Cinder tell, for want of more.

        :raises Unsettled: when that is not enough for an exact settlement
        """
        destined = [migration for migration in migrations
                    if migration.dest_compute == destination]
        if not destined:
            raise Unsettled('no record names the destination')
        source_bdms = self._rebuilt_bdms(
            context, instance, destined[-1].status)
        migrate_data = self.migrate_data(context, instance, destination)
        return Plan(destination, migrate_data.block_migration, migrate_data,
                    source_bdms)

    def migrate_data(self, context, instance, destination):
        """Make the data that a migration to a host would begin with.

        :param context: a request context
        :param instance: a ``nova.objects.Instance``
        :param destination: the other host's name
        :returns: a ``nova.objects.migrate_data.LibvirtLiveMigrateData``
        :raises Exception: when the destination does not answer
        """
        shared_path = self._shares_instance_path(
            context, instance, destination)
        backend = self._manager.driver.image_backend.backend()
        shared_blocks = backend.is_shared_block_storage()
        migrate_data = migrate_data_obj.LibvirtLiveMigrateData(
            is_shared_instance_path=shared_path,
            is_shared_block_storage=shared_blocks,
            block_migration=not (shared_path or shared_blocks),
            instance_relative_path=libvirt_utils.get_instance_path(
                instance, relative=True),
            serial_listen_ports=[],
            src_supports_numa_live_migration=bool(
                instance.migration_context))
        migrate_data.vifs = (
            migrate_data_obj.VIFMigrateData.create_skeleton_migrate_vifs(
                instance.get_network_info()))
        return migrate_data

    def _shares_instance_path(self, context, instance, destination):
        driver = self._manager.driver
        data = driver.check_instance_shared_storage_local(context, instance)
        if not data:
            # no folder here, or disks that are no files
            return False
        try:
            return self._manager.compute_rpcapi.check_instance_shared_storage(
                context, instance=instance, data=data, host=destination)
        finally:
            driver.check_instance_shared_storage_cleanup(context, data)

    def _rebuilt_bdms(self, context, instance, status):
        rebuilt = bdms(context, instance.uuid)
        for bdm in volumes(rebuilt).values():
            self._rebuild_bdm(context, instance, bdm, status)
        return rebuilt

    def _rebuild_bdm(self, context, instance, bdm, status):
        volume_api = self._manager.volume_api
        missing = Unsettled(
            'the journal has no entry, and the source\'s attachment of volume '
            '%s cannot be told from the destination\'s' % bdm.volume_id)
        if bdm.attachment_id is None or not hasattr(
                volume_api, 'attachment_get_all'):
            raise missing
        others = [attachment['id'] for attachment in
                  volume_api.attachment_get_all(
                      context, instance_id=instance.uuid,
                      volume_id=bdm.volume_id)
                  if attachment['id'] != bdm.attachment_id]
        if not others:
            return
        if len(others) > 1 or not status.startswith('running'):
            raise missing
        # pre_live_migration is done, so the mapping is the destination's
        attachment = volume_api.attachment_get(context, others[0])
        bdm.attachment_id = others[0]
        connection_info = dict(attachment['connection_info'],
                               serial=bdm.volume_id)
        bdm.connection_info = jsonutils.dumps(connection_info)
