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

"""What is done to an instance, in words that its owner and operators see.

The list of an instance's actions (``openstack server event list``) is where
they look. An event fails by an exception that passes through it.
"""

import contextlib

from nova.compute import utils as compute_utils
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.objects import fields
from oslo_log import log as logging

from nova_migration_guard import facts

LOG = logging.getLogger(__name__)


class InstanceActions(object):
    """The actions of the instances of one nova-compute.

    :param manager: a ``nova.compute.manager.ComputeManager``
    :param host: a :class:`nova_migration_guard.nova_host.host.NovaHost`
    """

    def __init__(self, manager, host):
        self._manager = manager
        self._host = host

    @contextlib.contextmanager
    def _action(self, uuid, name):
        context = nova_context.get_admin_context()
        objects.InstanceAction.action_start(
            context, uuid, name, want_result=False)
        with compute_utils.EventReporter(
                context, 'compute_' + name, self._host.name, uuid):
            yield context
        objects.InstanceAction.action_finish(context, uuid, want_result=False)

    def settlement(self, uuid, ruling):
        """Show a settlement, and how it ends.

        :param uuid: the instance's UUID
        :param ruling: a :class:`nova_migration_guard.verdict.Ruling`
        :returns: a context manager that gives the request context, by which
            Nova tells what belongs to the action
        """
        return self._action(
            uuid, 'migration_guard_' + ruling.verdict.name.lower())

    def notify_abort(self, instance, phase):
        """Send the notifications of an abort, as Nova's own sends them.

        Both kinds, where the operator has not switched one off. That none can
        be sent is no reason to let a job run.

        :param instance: a ``nova.objects.Instance``
        :param phase: 'start' or 'end'
        """
        context = nova_context.get_admin_context()
        try:
            self._manager._notify_about_instance_usage(
                context, instance, 'live.migration.abort.' + phase)
            compute_utils.notify_about_instance_action(
                context, instance, self._host.name,
                action=fields.NotificationAction.LIVE_MIGRATION_ABORT,
                phase=phase)
        except Exception as e:
            LOG.warning('That its migration is aborted is not notified: %s',
                        e, instance=instance)

    def hold(self, uuid, reason, fault=None):
        """Show that an instance is held, and why.

        :param uuid: the instance's UUID
        :param reason: one sentence
        :param fault: where waiting cannot help, what the instance's fault
            says, in less than 200 characters; it is in ERROR as well then,
            and its task state stays
        """
        if fault is not None:
            self._fault(uuid, fault)
        try:
            with self._action(uuid, 'migration_guard_hold'):
                raise exception.MigrationError(reason=reason)
        except exception.MigrationError:
            LOG.debug('Shown in the actions: %s', reason, instance_uuid=uuid)

    def _fault(self, uuid, reason):
        instance = self._host.instance(uuid)
        if instance is None or instance.host != self._host.name:
            return
        compute_utils.add_instance_fault_from_exc(
            nova_context.get_admin_context(), instance,
            exception.MigrationError(reason=reason))
        instance.vm_state = facts.ERROR
        instance.save()

    def fail(self, context, instance, event, reason):
        """Let a request fail.

        :param context: of the user's request, whose action it is
        :param instance: a ``nova.objects.Instance``
        :param event: the event's name
        :param reason: one sentence
        """
        try:
            with compute_utils.EventReporter(
                    context, event, self._host.name, instance.uuid):
                raise exception.MigrationError(reason=reason)
        except exception.MigrationError as e:
            compute_utils.add_instance_fault_from_exc(
                nova_context.get_admin_context(), instance, e)

    def refuse_deletion(self, context, uuid, reason):
        """Let a deletion fail, so that it can be asked for again later.

        :param context: of the user's request, whose action it is
        :param uuid: the instance's UUID
        :param reason: one sentence
        """
        instance = self._host.instance(uuid)
        if instance is None:
            return
        LOG.warning('It is not deleted, because it is held: %s.', reason,
                    instance=instance)
        instance.task_state = facts.MIGRATING
        instance.save()
        self.fail(context, instance, 'compute_terminate_instance', reason)

    def delete_where_it_is(self, context, uuid, bdms, delete):
        """Delete an instance, here or on the host that it has moved to.

        :param context: of the user's request
        :param uuid: the instance's UUID
        :param bdms: its block device mappings
        :param delete: ``terminate_instance`` of this host
        """
        instance = self._host.instance(uuid)
        if instance is None:
            return
        if instance.host == self._host.name:
            delete(context, instance, bdms)
        else:
            self._manager.compute_rpcapi.terminate_instance(
                context, instance, bdms)

    @staticmethod
    def refuse_start(reason):
        """Let a guest's start fail.

        :param reason: one sentence
        :raises nova.exception.MigrationError: always
        """
        raise exception.MigrationError(
            reason='nova-migration-guard holds the instance: %s' % reason)
