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

"""One nova-compute: its instances, their records and states, its peers."""

import calendar
import time
import typing
from urllib import parse

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.virt.libvirt import host as libvirt_host
from oslo_config import cfg
from oslo_log import log as logging

from nova_migration_guard import facts

CONF = cfg.CONF
LOG = logging.getLogger(__name__)

# What ComputeManager.init_host loads with its instances, on any release.
_INSTANCE_ATTRIBUTES = ['info_cache', 'metadata', 'system_metadata',
                        'numa_topology', 'flavor']

# An instance has two open live migrations at the most, where the first was
# not ended by Nova.
_REQUESTS_UNDER_WAY = 2

# What a source waits for, by the names of the events.
_WORK = ('compute_pre_live_migration',
         'compute_post_live_migration_at_destination')

# Where libvirtd listens, by the transport of a URI.
_LIBVIRT_PORTS = {'tls': 16514, 'tcp': 16509, 'ssh': 22}


def _as_on(instance, host):
    """A copy of an instance that Nova's RPC sends to another host."""
    copy = instance.obj_clone()
    copy.host = host
    return copy


def _posix(moment):
    return None if moment is None else calendar.timegm(moment.utctimetuple())


def _record(migration):
    return facts.Record(
        id=migration.id, status=migration.status,
        source=migration.source_compute, destination=migration.dest_compute,
        changed=_posix(migration.updated_at), uuid=migration.uuid)


class NovaHost(object):
    """One nova-compute, reached through its ComputeManager.

    :param manager: a ``nova.compute.manager.ComputeManager`` whose driver is
        the libvirt driver
    """

    def __init__(self, manager):
        self._manager = manager

    @property
    def name(self):
        return self._manager.host

    def connect(self):
        """Open another connection to the driver's libvirt.

        Under eventlet it hands its calls to a native thread, as the driver's
        does; it gets no events.

        :returns: a ``libvirt.virConnect``
        :raises: libvirt's error, when libvirt is away
        """
        host = self._manager.driver._host
        return host._connect(host._uri, host._read_only)

    def connect_peer(self, peer):
        """Open a read-only connection to another host's libvirt.

        Over the URI that live migration uses.

        :param peer: the other host's name
        :returns: a ``libvirt.virConnect``
        :raises: libvirt's error
        """
        driver = self._manager.driver
        return driver._host._connect(driver._live_migration_uri(peer), True)

    def libvirt_port(self):
        """The port on which the other hosts' libvirt listens."""
        uri = parse.urlparse(self._manager.driver._live_migration_uri('peer'))
        return uri.port or _LIBVIRT_PORTS.get(
            uri.scheme.partition('+')[2], _LIBVIRT_PORTS['tls'])

    def has_domain_at(self, instance, peer):
        """Ask another host's nova-compute whether it has a guest's domain.

        The console's output is the one question whose answer tells that on
        every release, whatever the domain's state, and that leaves no fault
        at the instance when there is none.

        :param instance: a ``nova.objects.Instance``
        :param peer: the other host's name
        :raises Exception: when it does not say
        """
        try:
            self._manager.compute_rpcapi.get_console_output(
                nova_context.get_admin_context(), _as_on(instance, peer), 1)
        except exception.InstanceNotFound:
            return False
        except (exception.ConsoleNotAvailable,
                exception.ConsoleLogOutputException) as e:
            LOG.debug('There is a domain without a console: %s', e,
                      instance=instance)
        return True

    def runs_at(self, instance, peer):
        """Ask another host's nova-compute whether it runs a guest.

        :param instance: a ``nova.objects.Instance``
        :param peer: the other host's name
        :raises Exception: when it does not say
        """
        try:
            self._manager.compute_rpcapi.get_instance_diagnostics(
                nova_context.get_admin_context(), _as_on(instance, peer))
        except exception.InstanceInvalidState:
            return False
        return True

    @staticmethod
    def works_at(uuid, peer):
        """Tell whether another host still works for a live migration.

        A source that was killed leaves the destination's nova-compute at
        what it has asked for. Each such request begins and ends an event of
        the instance's actions, on any release. A nova-compute that was
        killed, too, ends none: an event counts no longer than a source waits
        for its end.

        :param uuid: the instance's UUID
        :param peer: the other host's name
        """
        context = nova_context.get_admin_context()
        since = time.time() - CONF.long_rpc_timeout
        requests = 0
        for action in objects.InstanceActionList.get_by_instance_uuid(
                context, uuid):
            if any(event.event in _WORK and event.host == peer and
                   event.finish_time is None and
                   _posix(event.start_time) > since for event in
                   objects.InstanceActionEventList.get_by_action(
                       context, action.id)):
                return True
            requests += action.action == facts.LIVE_MIGRATION
            if requests == _REQUESTS_UNDER_WAY:
                break
        return False

    @staticmethod
    def is_fenced(peer):
        """Tell whether Nova was told that another host is down.

        :param peer: the other host's name
        :returns: whether an operator has forced its nova-compute down
        :raises Exception: what Nova raises
        """
        try:
            return objects.Service.get_by_compute_host(
                nova_context.get_admin_context(), peer).forced_down
        except exception.NotFound:
            return False

    def has_disk(self, instance):
        """Tell whether an instance's folder is on this host.

        :param instance: a ``nova.objects.Instance``
        """
        return self._manager.driver.instance_on_disk(instance)

    @staticmethod
    def libvirt_error():
        """The class of the driver's libvirt errors.

        The driver imports libvirt late, and Nova's fixtures put their own in
        its place.
        """
        return libvirt_host.libvirt.libvirtError

    def instances(self):
        """Read the instances whose host is this one, in one query."""
        return list(objects.InstanceList.get_by_host(
            nova_context.get_admin_context(), self.name, expected_attrs=[]))

    def all_open_records(self):
        """Read the open live migrations that leave this host, in one query.

        :returns: {instance uuid: [:class:`nova_migration_guard.facts.Record`]}
        """
        found: typing.Dict[str, typing.List[facts.Record]] = {}
        for migration in self._open_migrations():
            found.setdefault(migration.instance_uuid, []).append(
                _record(migration))
        return found

    def open_records(self, uuid):
        """Read the open live migrations of one instance that leave this host.

        :param uuid: the instance's UUID
        :returns: a list of :class:`nova_migration_guard.facts.Record`
        """
        return [_record(migration)
                for migration in self._open_migrations(instance_uuid=uuid)]

    def records(self, uuid):
        """Read every live migration's record of one instance, oldest first.

        :param uuid: the instance's UUID
        :returns: a list of :class:`nova_migration_guard.facts.Record`
        """
        return [_record(migration)
                for migration in self._migrations(instance_uuid=uuid)]

    def _open_migrations(self, **filters):
        return self._migrations(source_compute=self.name,
                                status=list(facts.OPEN_STATUSES), **filters)

    @staticmethod
    def _migrations(**filters):
        found = objects.MigrationList.get_by_filters(
            nova_context.get_admin_context(),
            dict(filters, migration_type=facts.LIVE_MIGRATION))
        return sorted(found, key=lambda migration: migration.id)

    def instance(self, uuid):
        """Read one instance afresh, wherever it is.

        :param uuid: the instance's UUID
        :returns: a ``nova.objects.Instance``, or None when it is deleted
        """
        try:
            return objects.Instance.get_by_uuid(
                nova_context.get_admin_context(), uuid,
                expected_attrs=_INSTANCE_ATTRIBUTES)
        except exception.InstanceNotFound:
            return None

    @staticmethod
    def status_of(migration_id):
        """Read the status of a migration's record.

        :param migration_id: the record's ID
        """
        return objects.Migration.get_by_id(
            nova_context.get_admin_context(), migration_id).status

    @staticmethod
    def fail_migration(migration):
        """Give a migration that does not begin the status 'error'.

        :param migration: a ``nova.objects.Migration``
        """
        migration.status = facts.ERROR
        migration.save()

    def other_destinations(self, instance, but):
        """Where an instance's other open live migrations go.

        :param instance: a ``nova.objects.Instance``
        :param but: the ``nova.objects.Migration`` that does not count
        :returns: a set of hosts' names; None for one that is not known yet
        """
        return {migration.dest_compute for migration in
                self._open_migrations(instance_uuid=instance.uuid)
                if migration.id != but.id}

    def migrations_to_end(self, uuid, journaled):
        """Read the live migrations that a settlement of an instance ends.

        :param uuid: the instance's UUID
        :param journaled: the UUID of the journal's migration, or None
        :returns: a list of ``nova.objects.Migration``, oldest first: those
            that leave this host and are open, and the journal's; without any
            the last one that left this host, whatever its status
        """
        left = [migration
                for migration in self._migrations(instance_uuid=uuid)
                if migration.source_compute == self.name]
        return [migration for migration in left
                if migration.status in facts.OPEN_STATUSES or
                migration.uuid == journaled] or left[-1:]

    @staticmethod
    def make_busy(instance, task_state=facts.MIGRATING):
        """Give an idle instance a task state, so that the API refuses actions.

        :param instance: a ``nova.objects.Instance``
        :param task_state: which one
        :raises nova.exception.UnexpectedTaskStateError: when the task state
            was changed meanwhile
        """
        if instance.task_state is None:
            instance.task_state = task_state
            instance.save(expected_task_state=[None])

    @staticmethod
    def take_over(instance):
        """Give an instance the task state with which Nova ends a migration.

        :param instance: a ``nova.objects.Instance``
        :raises nova.exception.UnexpectedTaskStateError: when the task state
            was changed meanwhile
        """
        if instance.task_state != facts.MIGRATING:
            former = instance.task_state
            instance.task_state = facts.MIGRATING
            instance.save(expected_task_state=[former])

    def end_task(self, uuid, task_states):
        """Let an instance be idle.

        :param uuid: the instance's UUID
        :param task_states: the task states that are ended
        """
        instance = self.instance(uuid)
        if instance is not None and instance.task_state in task_states:
            former = instance.task_state
            instance.task_state = None
            instance.save(expected_task_state=[former])

    def give_back_task(self, uuid, task_state):
        """Give an instance a task state that it had before it was settled.

        :param uuid: the instance's UUID
        :param task_state: which one
        """
        instance = self.instance(uuid)
        if instance is not None and instance.task_state is None:
            instance.task_state = task_state
            instance.save(expected_task_state=[None])

    @staticmethod
    def restore_vm_state(instance, vm_state):
        """Take the vm_state 'error' of an interrupted migration back.

        :param instance: a ``nova.objects.Instance``
        :param vm_state: which one it was before, or None when that is not
            known
        """
        if instance.vm_state == facts.ERROR and vm_state is not None:
            instance.vm_state = vm_state
            instance.save()

    def initialise(self, instance):
        """Run the part of Nova's start-up that a held instance has missed.

        :param instance: a ``nova.objects.Instance``
        """
        self._manager._init_instance(
            nova_context.get_admin_context(), instance)
