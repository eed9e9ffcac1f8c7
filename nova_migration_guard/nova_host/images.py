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

"""The images of instances that nobody finishes any more."""

from keystoneauth1 import exceptions as auth_errors
from keystoneauth1 import loading
from nova import context as nova_context
from nova import exception
from oslo_config import cfg
from oslo_log import log as logging

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

# Statuses of an image that nobody uploads any more.
_UNFINISHED = ('queued', 'saving')

# The sections of nova.conf with the credentials of Nova's own user, best
# first; since Train no nova-compute starts without the second.
_CREDENTIALS = ('service_user', 'placement')


class Images(object):
    """The images that are made of one nova-compute's instances.

    :param manager: a ``nova.compute.manager.ComputeManager``
    """

    def __init__(self, manager):
        self._manager = manager

    @staticmethod
    def _context():
        """A context with which Glance lets Nova's own user in.

        The one of the user's request is gone with the process.
        """
        auth = None
        for section in _CREDENTIALS:
            auth = auth or loading.load_auth_from_conf_options(CONF, section)
        return nova_context.RequestContext(is_admin=True,
                                           user_auth_plugin=auth)

    def delete(self, image_id):
        """Delete an image that was not finished, as Nova does on an error.

        :param image_id: the image's ID
        :raises Exception: what Glance raises
        """
        context = self._context()
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

    def delete_unfinished(self, instance):
        """Delete the images of an instance that are not finished.

        :param instance: a ``nova.objects.Instance`` of which nobody makes an
            image
        :raises Exception: what Glance raises
        """
        context = self._context()
        for status in _UNFINISHED:
            for image in self._manager.image_api.get_all(context, filters={
                    'instance_uuid': instance.uuid, 'status': status}):
                properties = image.get('properties', {})
                if properties.get('instance_uuid') == instance.uuid and (
                        image['status'] == status):
                    self.delete(image['id'])
