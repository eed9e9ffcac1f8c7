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

"""Ends a live migration of this host through Nova's own code.

Nova's rollback and post-migration log many a failure of Cinder, Neutron or
Placement and go on. Here such a failure is an error, found before Nova gives
the instance free or after: what is not undone or finished in full stays held,
and every step can be made again.
"""

import contextlib
import inspect
from xml.etree import ElementTree

from nova import context as nova_context
from nova import exception
from nova.network import model as network_model
from nova import objects
from nova.objects import migrate_data as migrate_data_obj
from oslo_log import log as logging

from nova_migration_guard import facts
from nova_migration_guard.nova_host import allocations
from nova_migration_guard.nova_host import plan as plans
from nova_migration_guard.nova_host import volumes

LOG = logging.getLogger(__name__)

Unsettled = plans.Unsettled

# What the destination answers when it is to drop a claim a second time.
_UNPINNED = (exception.CPUUnpinningInvalid, exception.CPUUnpinningUnknown)


def _addresses(domain_xml):
    """The MAC and PCI addresses of a domain's devices."""
    found = set()
    for device in ElementTree.fromstring(domain_xml).findall('./devices/*'):
        mac = device.find('mac')
        if mac is not None:
            found.add(mac.get('address', '').lower())
        address = device.find('./source/address')
        if address is not None and address.get('bus'):
            found.add('%04x:%02x:%02x.%x' % tuple(
                int(address.get(name, '0'), 16)
                for name in ('domain', 'bus', 'slot', 'function')))
    return found


class LiveMigrations(object):
    """The live migrations that leave one nova-compute's host.

    :param manager: a ``nova.compute.manager.ComputeManager`` whose driver is
        the libvirt driver
    """

    def __init__(self, manager):
        self._manager = manager
        self._plans = plans.Plans(manager)
        self._allocations = allocations.Allocations(manager)
        self._volumes = volumes.Volumes(manager)
        self.entry = self._plans.entry
        self.prepared = self._plans.prepared
        #: UUIDs of the instances whose migration is being ended here
        self.ending = set()

    @contextlib.contextmanager
    def _ending(self, instance):
        """Tell the patches of Nova's methods that they are called here."""
        self.ending.add(instance.uuid)
        try:
            yield
        finally:
            self.ending.discard(instance.uuid)

    # ---- roll back

    def _leave_others(self, context, instance, destination, migrations):
        """Clean up where other migrations of the instance would have gone.

        :param destination: of the one migration that is left out
        :param migrations: every open one
        """
        elsewhere = {
            migration.dest_compute: migration for migration in migrations
            if migration.dest_compute not in (
                None, destination, instance.host, self._manager.host)}
        for host, migration in elsewhere.items():
            self._manager.network_api.setup_networks_on_host(
                context, instance, host=host, teardown=True)
            self._allocations.leave(context, instance, host)
            if migration.status in facts.BEFORE_LIBVIRT:
                continue
            data = self._plans.migrate_data(context, instance, host)
            do_cleanup, destroy_disks = (
                self._manager._live_migration_cleanup_flags(data))
            if do_cleanup:
                rpcapi = self._manager.compute_rpcapi
                rpcapi.rollback_live_migration_at_destination(
                    context, instance, host, destroy_disks=destroy_disks,
                    migrate_data=data)

    def roll_back(self, context, instance, entry, migrations, destination,
                  domain_xml, answers=True):
        """Undo a live migration whose guest goes on running here.

        :param context: of the settlement
        :param instance: a ``nova.objects.Instance`` with the task state
            'migrating'
        :param entry: the journal's, or None
        :param migrations: every open ``nova.objects.Migration`` of it that
            leaves this host, and the entry's; oldest first
        :param destination: the host that is known not to have the guest
        :param domain_xml: of the domain as it runs here, or None when it is
            shut off
        :param answers: whether the destination does. One that does not is
            sent what it need not answer, and drops its claim at its next
            audit.
        :raises nova_migration_guard.nova_host.plan.Unsettled: when a step
            could not be made
        :raises Exception: what Nova raises
        """
        plan = self._plans.plan(context, instance, entry, migrations,
                                destination)
        self._leave_others(context, instance, plan.destination, migrations)
        holding = self._allocations.holding(context, instance, migrations)
        self._volumes.give_back(context, instance, plan, answers)
        self._manager.network_api.setup_networks_on_host(
            context, instance, host=plan.destination, teardown=True)
        if 'vifs' not in plan.migrate_data:
            plan.migrate_data.vifs = []
        if not answers:
            plan.migrate_data.src_supports_numa_live_migration = False
        if domain_xml is not None:
            self._attach_missing_vifs(context, instance, plan, domain_xml)
        plan.migrate_data.migration = (
            holding or self._of_plan(plan, entry, migrations))
        with self._ending(instance):
            self._roll_back(context, instance, plan)
        self._allocations.take_back(context, instance, migrations)
        self._end(context, migrations, facts.CANCELLED)

    @staticmethod
    def _of_plan(plan, entry, migrations):
        for migration in reversed(migrations):
            if entry is not None and migration.uuid == entry.migration:
                return migration
        for migration in reversed(migrations):
            if migration.dest_compute == plan.destination:
                return migration
        raise Unsettled('there is no record of the migration')

    @staticmethod
    def keep_context_dropped(instance):
        """Let no other host save an instance's migration context again.

        The destination cleans up with a copy of the instance and saves it,
        when the context has been dropped here. What it takes for changed is
        what the copy says is changed.

        :param instance: the ``nova.objects.Instance`` that is sent there
        """
        if instance.migration_context is not None:
            instance.migration_context.obj_reset_changes(recursive=True)

    def _roll_back(self, context, instance, plan):
        self.keep_context_dropped(instance)
        method = self._manager._rollback_live_migration
        kwargs = {'migration_status': facts.CANCELLED,
                  'source_bdms': volumes.without_attachments(plan.source_bdms)}
        if 'pre_live_migration' in inspect.signature(method).parameters:
            # 24.2.1: leave volumes and interfaces alone. They are settled
            # by now, and Nova would drop errors with them.
            kwargs['pre_live_migration'] = True
        else:
            # the driver would attach the interfaces again that it counts as
            # missing, and to 21.x it counts none of a device's
            plan.migrate_data.vifs = [
                migrate_data_obj.VIFMigrateData(port_id=vif.port_id)
                for vif in plan.migrate_data.vifs]
        try:
            method(context, instance, plan.destination, plan.migrate_data,
                   **kwargs)
        except _UNPINNED as e:
            # an earlier attempt was ended between this and what follows
            LOG.info('The destination has dropped its claim before: %s', e,
                     instance=instance)
            plan.migrate_data.src_supports_numa_live_migration = False
            method(context, instance, plan.destination, plan.migrate_data,
                   **kwargs)

    def _attach_missing_vifs(self, context, instance, plan, domain_xml):
        """Attach the devices that libvirt does not migrate again.

        The driver's own way counts the interfaces, and attaches all of them
        again where one is missing.
        """
        present = _addresses(domain_xml)
        for migrated in plan.migrate_data.vifs:
            if 'source_vif' not in migrated or not migrated.source_vif:
                continue
            vif = migrated.source_vif
            address = (vif.get('profile') or {}).get('pci_slot')
            if (vif['vnic_type'] in network_model.VNIC_TYPES_DIRECT_PASSTHROUGH
                    and vif['address'].lower() not in present
                    and address not in present):
                LOG.info('Attaching interface %s again.', vif['id'],
                         instance=instance)
                self._manager.driver.attach_interface(
                    context, instance, instance.image_meta, vif)

    def left_behind(self, entry):
        """Say what a rollback of Nova's has left, for want of an error.

        :param entry: the journal's
        :returns: a description, or None
        :raises Exception: what Nova raises
        """
        context = nova_context.get_admin_context()
        if self._allocations.of(context, entry.migration):
            return 'an allocation of the migration'
        sources = plans.volumes(self._plans.source_bdms(context, entry))
        current = plans.volumes(plans.bdms(context, entry.instance))
        for volume_id, bdm in current.items():
            source = sources.get(volume_id)
            if source is None or bdm.attachment_id != source.attachment_id:
                return 'volume %s attached to the destination' % volume_id
        if self._volumes.nobodys(context, entry.instance, sources):
            return "an attachment of the destination's"
        return None

    def undo(self, context, instance, migrations):
        """Undo live migrations that have never reached libvirt.

        What the conductor does before it casts to this host: the allocation,
        the port bindings, the migration context. The destination's claims
        end with the records, at its next audit.

        :param context: of the settlement
        :param instance: a ``nova.objects.Instance``
        :param migrations: the ``nova.objects.Migration`` objects
        :raises nova_migration_guard.nova_host.plan.Unsettled: when a step
            could not be made
        :raises Exception: what Nova raises
        """
        for destination in {migration.dest_compute
                            for migration in migrations
                            if migration.dest_compute}:
            self._manager.network_api.setup_networks_on_host(
                context, instance, host=destination, teardown=True)
        self._allocations.take_back(context, instance, migrations)
        instance.drop_migration_context()
        instance.progress = 0
        if instance.task_state == facts.MIGRATING:
            instance.task_state = None
            instance.save(expected_task_state=[facts.MIGRATING])
        else:
            instance.save()
        self._end(context, migrations, facts.CANCELLED)

    def abandon(self, migrations):
        """End the live migrations of an instance that is deleted.

        :param migrations: the ``nova.objects.Migration`` objects
        :raises Exception: what Nova raises
        """
        context = nova_context.get_admin_context()
        self._allocations.delete(context, migrations)
        self._end(context, migrations, facts.CANCELLED)

    def withdraw(self, instance, migration, kept):
        """End a live migration that was refused; leave the instance alone.

        :param instance: a ``nova.objects.Instance`` that is busy otherwise
        :param migration: a ``nova.objects.Migration``
        :param kept: the hosts that the instance's other migrations go to
        :raises nova_migration_guard.nova_host.plan.Unsettled: when a step
            could not be made
        :raises Exception: what Nova raises
        """
        context = nova_context.get_admin_context()
        host = migration.dest_compute
        if host not in kept:
            self._manager.network_api.setup_networks_on_host(
                context, instance, host=host, teardown=True)
            self._allocations.leave(context, instance, host)
        if self._allocations.of(context, migration.uuid):
            # what the instance had before the conductor took it
            self._allocations.give_to(context, instance, migration)
        self._end(context, [migration], facts.CANCELLED)

    # ---- finish

    def finish(self, context, instance, entry, migrations, destination):
        """Finish a live migration whose guest runs at the destination.

        :param context: of the settlement
        :param instance: a ``nova.objects.Instance`` with the task state
            'migrating'
        :param entry: the journal's, or None
        :param migrations: as for :meth:`roll_back`
        :param destination: the host that has the guest
        :raises nova_migration_guard.nova_host.plan.Unsettled: when a step
            could not be made
        :raises Exception: what Nova raises
        """
        if self._manager.rt.pci_tracker is None:
            # Nova's post-migration frees devices, and the tracker of a
            # nova-compute that starts has none yet
            raise Unsettled('the guest is at its destination, and the first '
                            'resource audit has to come before that is '
                            'written down')
        plan = self._plans.plan(context, instance, entry, migrations,
                                destination)
        self._leave_others(context, instance, destination, migrations)
        # Nova gives it the end; what others hold is taken from them below
        plan.migrate_data.migration = self._of_plan(plan, entry, migrations)
        with self._ending(instance):
            self._manager._post_live_migration(
                context, instance, plan.destination, plan.block_migration,
                plan.migrate_data, plan.source_bdms)
        # to 26.x Nova goes on when the destination has failed
        instance.refresh()
        if instance.host != plan.destination:
            raise Unsettled('the destination did not take the instance over')
        self._close(context, instance, plan, migrations)

    def close(self, context, instance, entry, migrations, destination):
        """Finish what is left when the destination has taken over.

        :param context: of the settlement
        :param instance: a ``nova.objects.Instance`` whose host is the
            destination already
        :param entry: the journal's, or None
        :param migrations: as for :meth:`roll_back`
        :param destination: the instance's host
        :raises nova_migration_guard.nova_host.plan.Unsettled: when a step
            could not be made
        :raises Exception: what Nova raises
        """
        self._must_not_return(context, instance)
        self._leave_others(context, instance, destination, migrations)
        # the destination can have been killed before it did this
        self._manager.network_api.setup_networks_on_host(
            context, instance, host=self._manager.host, teardown=True)
        plan = None
        if entry is not None:
            plan = self._plans.plan(context, instance, entry, migrations,
                                    destination)
            # to 24.x the source is cleaned after the destination took over
            self._clean_source(context, instance, plan)
        self._close(context, instance, plan, migrations)

    def _must_not_return(self, context, instance):
        """Leave alone what the next migration has prepared here."""
        for migration in objects.MigrationList.get_by_filters(
                context, {'instance_uuid': instance.uuid,
                          'status': list(facts.OPEN_STATUSES)}):
            if migration.dest_compute == self._manager.host:
                raise Unsettled('the instance is on its way back here')

    def _clean_source(self, context, instance, plan):
        flags = self._manager._live_migration_cleanup_flags
        do_cleanup, destroy_disks = flags(plan.migrate_data)
        if do_cleanup:
            if 'vifs' in plan.migrate_data:
                network_info = network_model.NetworkInfo.hydrate(
                    [migrated.source_vif
                     for migrated in plan.migrate_data.vifs])
            else:
                network_info = instance.get_network_info()
            self._manager.driver.cleanup(
                context, instance, network_info, destroy_disks=destroy_disks,
                migrate_data=plan.migrate_data, destroy_vifs=False)

    def _close(self, context, instance, plan, migrations):
        if plan is not None:
            kept = {bdm.attachment_id
                    for bdm in plans.bdms(context, instance.uuid)}
            for bdm in plans.volumes(plan.source_bdms).values():
                if bdm.attachment_id and bdm.attachment_id not in kept:
                    self._volumes.delete_attachment(context, bdm.attachment_id)
        self._allocations.delete(context, migrations)
        arrived = [migration for migration in migrations
                   if migration.dest_compute == instance.host]
        others = [migration for migration in migrations
                  if migration not in arrived[-1:]]
        self._end(context, others, facts.CANCELLED)
        for migration in arrived[-1:]:
            # stock Nova may have given it another end too early
            migration.status = (
                facts.ERROR if instance.vm_state == facts.ERROR else
                facts.COMPLETED)
            migration.save()

    @staticmethod
    def _end(context, migrations, status):
        for stale in migrations:
            migration = objects.Migration.get_by_id(context, stale.id)
            if migration.status in facts.OPEN_STATUSES:
                migration.status = status
                migration.save()
