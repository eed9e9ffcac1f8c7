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

"""Completes the picture from which a resource audit computes.

The audit reads the instances of its host and then the migrations in progress.
A move to this host that ends between the two is in neither: when the
instances were read its host was still the old one, and when the migrations
were read it had ended (bug 1896463). The audit then frees the devices of a
guest that uses them, and counts none of its CPUs and memory.

Every move saves the instance's host before it ends its migration. So an
instance that is missing from both lists has this host in the database by the
time that the second has been read, and one more look at the instances finds
it. No move can begin meanwhile: a claim needs the lock that the audit holds.
"""

from oslo_config import cfg
from oslo_log import log as logging

from nova_migration_guard import nova_host

LOG = logging.getLogger(__name__)
CONF = cfg.CONF


def complete(tracker, context, nodename, instances, by_uuid):
    """Add the instances that the audit has missed to its own lists.

    :param tracker: the ``nova.compute.resource_tracker.ResourceTracker``
        whose audit it is; the caller holds its ``compute_resources`` lock
    :param context: the audit's request context
    :param nodename: the node that is audited
    :param instances: the audit's ``nova.objects.InstanceList``, corrected in
        place; ``clean_usage`` gets it later
    :param by_uuid: the audit's {uuid: instance}, corrected in place
    """
    known = {instance.uuid for instance in instances}
    for instance in nova_host.arrived_during_audit(
            tracker, context, known, nodename):
        if CONF.migration_guard.mode == 'report':
            LOG.warning('The resource audit has missed an instance that '
                        'arrived while it ran; its resources would be kept.',
                        instance=instance)
            continue
        LOG.info('The resource audit had missed an instance that arrived '
                 'while it ran; its resources are kept.', instance=instance)
        instances.objects.append(instance)
        by_uuid[instance.uuid] = instance
        nova_host.count_usage(tracker, context, instance, nodename)
