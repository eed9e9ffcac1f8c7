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

"""The volumes of an instance whose live migration is undone."""

from nova import exception
from oslo_log import log as logging

from nova_migration_guard.nova_host import plan as plans

LOG = logging.getLogger(__name__)


def without_attachments(source_bdms):
    """Mappings with which Nova deletes no attachment.

    Every one is the source's by then, and 20.x deletes what it is given.

    :param source_bdms: a ``nova.objects.BlockDeviceMappingList``
    :returns: a copy of it
    """
    copies = source_bdms.obj_clone()
    for bdm in plans.volumes(copies).values():
        bdm.attachment_id = None
    return copies


class Volumes(object):
    """The volumes of the instances of one nova-compute's host.

    :param manager: a ``nova.compute.manager.ComputeManager``
    """

    def __init__(self, manager):
        self._manager = manager

    def give_back(self, context, instance, plan, answers):
        """Give an instance the attachments that it had on this host.

        :param context: a request context
        :param instance: a ``nova.objects.Instance``
        :param plan: a :class:`nova_migration_guard.nova_host.plan.Plan`
        :param answers: whether the destination does, so that it can be asked
            to disconnect them
        :raises nova_migration_guard.nova_host.plan.Unsettled: when it has
            other volumes by now
        :raises Exception: when Cinder or the destination does not answer
        """
        sources = plans.volumes(plan.source_bdms)
        current = plans.volumes(plans.bdms(context, instance.uuid))
        if set(sources) != set(current):
            raise plans.Unsettled('its volumes are not those that it had '
                                  'when the migration began')
        for volume_id, bdm in current.items():
            source = sources[volume_id]
            if (bdm.attachment_id == source.attachment_id and
                    bdm.connection_info == source.connection_info):
                continue
            if answers:
                # it asks the mapping for what it has to disconnect
                self._manager.compute_rpcapi.remove_volume_connection(
                    context, instance, volume_id, plan.destination)
            if bdm.attachment_id != source.attachment_id:
                self.delete_attachment(context, bdm.attachment_id)
            bdm.attachment_id = source.attachment_id
            bdm.connection_info = source.connection_info
            bdm.save()
        for attachment_id in self.nobodys(context, instance.uuid, sources):
            LOG.warning('Deleting attachment %s, which the destination made '
                        'and did not live to write down.', attachment_id,
                        instance=instance)
            self.delete_attachment(context, attachment_id)

    def nobodys(self, context, uuid, sources):
        """Find attachments of an instance's volumes that no mapping names.

        The destination of a live migration makes one of each volume before
        it writes that down. While the instance migrates nothing else makes
        any.

        :param context: a request context
        :param uuid: the instance's UUID
        :param sources: {volume ID: its ``nova.objects.BlockDeviceMapping`` on
            the host that has the guest}
        :returns: a list of their IDs; to 27.x, which do not ask Cinder for
            the attachments of a volume, none
        :raises Exception: when Cinder does not answer
        """
        volume_api = self._manager.volume_api
        if not hasattr(volume_api, 'attachment_get_all'):
            return []
        return [attachment['id'] for volume_id, bdm in sources.items()
                if bdm.attachment_id
                for attachment in volume_api.attachment_get_all(
                    context, instance_id=uuid, volume_id=volume_id)
                if attachment['id'] != bdm.attachment_id]

    def delete_attachment(self, context, attachment_id):
        """Delete an attachment that may be gone already.

        :param context: a request context
        :param attachment_id: its ID
        :raises Exception: when Cinder does not answer
        """
        try:
            self._manager.volume_api.attachment_delete(context, attachment_id)
        except exception.VolumeAttachmentNotFound:
            LOG.debug('Attachment %s is gone already.', attachment_id)
