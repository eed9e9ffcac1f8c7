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

"""What Placement has allocated to an instance and to its migrations."""

from nova import objects

from nova_migration_guard.nova_host import plan as plans


class Allocations(object):
    """The allocations on one nova-compute's host.

    :param manager: a ``nova.compute.manager.ComputeManager``
    """

    def __init__(self, manager):
        self._manager = manager

    def of(self, context, consumer):
        """Read what a consumer has.

        :param context: a request context
        :param consumer: the UUID of an instance or a migration
        :returns: {UUID of a provider: what it has there}
        :raises Exception: when Placement does not answer
        """
        return self._manager.reportclient.get_allocs_for_consumer(
            context, consumer).get('allocations', {})

    def holding(self, context, instance, migrations):
        """Which of the migrations holds the allocation on this host.

        :param context: a request context
        :param instance: a ``nova.objects.Instance``
        :param migrations: a list of ``nova.objects.Migration``
        :returns: one of them, or None
        :raises Exception: when Placement does not answer
        """
        node = objects.ComputeNode.get_by_host_and_nodename(
            context, self._manager.host, instance.node)
        found = None
        for migration in migrations:
            if node.uuid in self.of(context, migration.uuid):
                found = migration
        return found

    def delete(self, context, migrations):
        """Delete what migrations have.

        :param context: a request context
        :param migrations: a list of ``nova.objects.Migration``
        :raises Exception: when Placement does not answer
        """
        for migration in migrations:
            if self.of(context, migration.uuid):
                self._manager.reportclient.delete_allocation_for_instance(
                    context, migration.uuid, consumer_type='migration')

    def give_to(self, context, instance, migration):
        """Give an instance what a migration has, in place of its own.

        :param context: a request context
        :param instance: a ``nova.objects.Instance``
        :param migration: a ``nova.objects.Migration``
        :raises nova_migration_guard.nova_host.plan.Unsettled: when Placement
            does not do it
        """
        self._manager._revert_allocation(context, instance, migration)
        if self.of(context, migration.uuid):
            raise plans.Unsettled('Placement did not give the allocation on '
                                  'this host back to the instance')

    def leave(self, context, instance, host):
        """Take away what an instance has on a host where it will not go.

        The conductor adds the destination's allocation to those that an
        instance has. Where it is not where the instance is, as with the
        second of two migrations, it moves none to the migration.

        :param context: a request context
        :param instance: a ``nova.objects.Instance``
        :param host: the other host's name
        :raises nova_migration_guard.nova_host.plan.Unsettled: when Placement
            does not do it
        :raises Exception: when Placement does not answer
        """
        for node in objects.ComputeNodeList.get_all_by_host(context, host):
            if node.uuid not in self.of(context, instance.uuid):
                continue
            client = self._manager.reportclient
            client.remove_provider_tree_from_instance_allocation(
                context, instance.uuid, node.uuid)
            if node.uuid in self.of(context, instance.uuid):
                raise plans.Unsettled('Placement did not take the allocation '
                                      'on %s away from the instance' % host)

    def take_back(self, context, instance, migrations):
        """Give an instance its allocation on this host, and no other.

        :param context: a request context
        :param instance: a ``nova.objects.Instance``
        :param migrations: every ``nova.objects.Migration`` that may have one
        :raises nova_migration_guard.nova_host.plan.Unsettled: when Placement
            does not do it
        :raises Exception: when Placement does not answer
        """
        holding = self.holding(context, instance, migrations)
        if holding is not None:
            self.give_to(context, instance, holding)
        self.delete(context, migrations)
