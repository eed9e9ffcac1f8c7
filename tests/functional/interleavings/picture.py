# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What an audit of a host can tell one state of the database from another."""

import collections

from nova import exception
from nova import objects

from tests.functional import releases

_ATTRIBUTES = ['flavor', 'migration_context', 'numa_topology']

#: host: what a read of the host's instances returns; progress: what a read of
#: its migrations in progress returns; instance, migrations: what a read of
#: the one or of all the others returns.
Picture = collections.namedtuple('Picture',
                                 'host progress instance migrations')


def _instance(context, uuid):
    try:
        instance = objects.Instance.get_by_uuid(
            context.elevated(read_deleted='yes'), uuid, _ATTRIBUTES)
    except exception.InstanceNotFound:
        return None
    move = instance.migration_context
    return (instance.host, instance.node, instance.vm_state,
            instance.task_state, instance.deleted,
            instance.flavor.flavorid,
            instance.old_flavor and instance.old_flavor.flavorid,
            instance.new_flavor and instance.new_flavor.flavorid,
            move and move.migration_id,
            # which CPUs: the move saves those of the other host
            instance.numa_topology and
            str([cell.cpu_pinning for cell in instance.numa_topology.cells]))


def _migrations(found, uuid):
    return tuple(sorted(
        (migration.id, migration.status, migration.source_compute,
         migration.source_node, migration.dest_compute, migration.dest_node)
        for migration in found if migration.instance_uuid == uuid))


def of(context, host, uuid):
    """Take the picture that one host's audit can read of an instance.

    :param context: a request context of the host's cell
    :param host: the host, which is also its node
    :param uuid: the instance's UUID
    :returns: a :class:`Picture`
    """
    instance = _instance(context, uuid)
    is_here = instance is not None and instance[:2] == (host, host) and (
        not instance[4])
    read = releases.audit_reads_of_migrations(objects.MigrationList)[0]
    return Picture(
        host=instance if is_here else None,
        progress=_migrations(
            getattr(objects.MigrationList, read)(context, host, host), uuid),
        instance=instance,
        migrations=_migrations(
            objects.MigrationList.get_by_filters(
                context, {'instance_uuid': uuid}), uuid))


def part(name):
    """Which part of a picture a read of the database depends on.

    :param name: the name of the function that reads
    :returns: a function of a :class:`Picture`
    """
    if name == 'instance_get_all_by_host_and_node':
        return lambda picture: picture.host
    if name == 'instance_get_all_uuids_by_hosts':
        return lambda picture: picture.host is not None
    if name.startswith('migration_get_in_progress'):
        return lambda picture: picture.progress
    if name.startswith('migration_'):
        return lambda picture: picture.migrations
    return lambda picture: picture.instance
