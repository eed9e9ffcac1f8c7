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

"""The live migrations of this nova-compute, while it lives.

Each is written down before libvirt is asked to migrate, and crossed out when
it has ended well. One that has ended badly is held, and the settler goes on
with it, as if nova-compute had died there.
"""

from oslo_log import log as logging

from nova_migration_guard import facts
from nova_migration_guard import journal as journals
from nova_migration_guard import verdict

LOG = logging.getLogger(__name__)


class Refused(Exception):
    """A migration does not start, or does not go on."""


class Operations(object):
    """The live migrations that leave one nova-compute's host.

    :param parts: a :class:`nova_migration_guard.parts.Parts`
    :param hold: a callable that holds an instance: (uuid, reason)
    :param held: {UUID: :class:`nova_migration_guard.held.Held`}
    :param settle: a callable that tries to settle an instance: (uuid)
    """

    def __init__(self, parts, hold, held, settle):
        self._parts = parts
        self._hold = hold
        self._held = held
        self._settle = settle

    def may_begin(self, context, dest, instance, block_migration, migration,
                  migrate_data):
        """Write a live migration down that is about to begin.

        The arguments are those of ``ComputeManager.live_migration``, which a
        cast calls: it can have waited in its queue while nova-compute was
        down, and while the migration was settled.

        :returns: whether it may begin. One that may not is undone.
        """
        reason = self._reason_to_refuse(instance, migration)
        if reason:
            self._refuse(context, instance, migration, reason)
            return False
        try:
            self._write(instance, lambda: self._parts.journal.begin(
                self._parts.migrations.entry(
                    context, instance, migration, dest, block_migration,
                    migrate_data)))
        except Refused as e:
            self._parts.host.fail_migration(migration)
            self._refuse(context, instance, migration, str(e))
            return False
        return True

    def _reason_to_refuse(self, instance, migration):
        if not self._parts.enforces:
            return None
        if instance.uuid in self._held:
            # the API took the request, so it may be settled by now
            self._settle(instance.uuid)
        if instance.uuid in self._held:
            return 'the instance is held: %s' % (
                self._held[instance.uuid].reason)
        try:
            status = self._parts.host.status_of(migration.id)
        except Exception as e:
            # the conductor is away: so Nova will find, too
            LOG.warning('The status of the migration cannot be read: %s', e,
                        instance=instance)
            return None
        if status not in facts.OPEN_STATUSES:
            return ('the migration was ended (%s) before this host began '
                    'it' % status)
        return self._other_under_way(instance, migration)

    def _other_under_way(self, instance, migration):
        """Keep the journal's entry of a migration that has not ended.

        An operator's reset-state lets the API accept a second one.
        """
        try:
            entry = self._parts.journal.entry(instance.uuid)
        except journals.JournalError as e:
            # whether it may begin without the journal is decided next
            LOG.debug('%s', e, instance=instance)
            return None
        if entry is not None and self._parts.host.other_destinations(
                instance, migration):
            return 'another live migration, to %s, has not ended' % (
                entry.destination)
        return None

    def _write(self, instance, write):
        """Write to the journal.

        :param write: a callable that does it
        :raises Refused: when it fails and must not
        """
        try:
            write()
        except Exception as e:
            required = (self._parts.enforces and
                        self._parts.options.journal_required)
            log = LOG.error if required else LOG.warning
            log('The live migration %(does)s: %(error)s', {
                'does': 'does not begin' if required else
                        'goes on without the journal',
                'error': e}, instance=instance)
            if required:
                raise Refused(str(e))

    def _refuse(self, context, instance, migration, reason):
        LOG.warning('The live migration is refused: %s.', reason,
                    instance=instance)
        fresh = self._parts.host.instance(instance.uuid)
        if fresh is None:
            return self._parts.migrations.abandon([migration])
        self._parts.actions.fail(
            context, fresh, 'compute_live_migration', reason)
        others = self._parts.host.other_destinations(fresh, migration)
        if (fresh.uuid in self._held or others or
                fresh.task_state not in (None, facts.MIGRATING)):
            # the task state is not this migration's
            self._parts.migrations.withdraw(fresh, migration, others)
        else:
            self._parts.migrations.undo(
                context.elevated(), fresh, [migration])

    def withdraw(self, migration):
        """Undo a live migration that was taken out of the queue.

        :param migration: a ``nova.objects.Migration``
        :raises Exception: what Nova raises
        """
        uuid = migration.instance_uuid
        instance = self._parts.host.instance(uuid)
        if instance is None:
            self._parts.migrations.abandon([migration])
        else:
            ruling = verdict.Ruling(verdict.Verdict.UNDO,
                                    'nova-compute stops')
            with self._parts.actions.settlement(uuid, ruling) as context:
                self._parts.migrations.undo(context, instance, [migration])
        self._parts.journal.end(uuid)

    def prepared(self, instance, migrate_data, source_bdms):
        """Write down that the destination has prepared for a migration.

        :param source_bdms: the block device mappings from before that
        :raises Refused: when it must be written and cannot be
        """
        self._write(instance, lambda: self._parts.journal.advance(
            instance.uuid, journals.PREPARED,
            **self._parts.migrations.prepared(migrate_data, source_bdms)))

    def started(self, instance):
        """Write down that libvirt is about to be asked to migrate.

        :raises Refused: when it must be written and cannot be
        """
        changes = {}
        try:
            changes['domain_xml'] = self._parts.jobs.xml(
                instance.uuid, self._parts.options.call_timeout, inactive=True)
        except Exception as e:
            LOG.warning("The domain's definition is not in the journal: %s",
                        e, instance=instance)
        self._write(instance, lambda: self._parts.journal.advance(
            instance.uuid, journals.STARTED, **changes))

    def post_migration(self, instance, dest, run):
        """Run Nova's post-migration, and look after what it leaves.

        :param dest: the destination's name
        :param run: a callable without arguments
        :returns: what it returns
        """
        uuid = instance.uuid
        if uuid in self._parts.migrations.ending:
            return run()
        try:
            self._parts.journal.advance(uuid, journals.POST_MIGRATION)
        except journals.JournalError as e:
            # nothing is as bad as not to go on from here
            LOG.error('%s', e, instance=instance)
        result, error = self._outcome(run)
        left = None if error else self._checked(self._not_taken_over, uuid,
                                                dest)
        return self._look_after(instance, result, error, 'post-migration',
                                left)

    def _not_taken_over(self, uuid, dest):
        instance = self._parts.host.instance(uuid)
        if instance is not None and instance.host != dest:
            # to 26.x Nova goes on when the destination has failed
            return 'the instance on %s' % instance.host
        return None

    def rollback(self, instance, run):
        """Run Nova's rollback, and look after what it leaves.

        :param run: a callable without arguments
        :returns: what it returns
        """
        uuid = instance.uuid
        if uuid in self._parts.migrations.ending:
            return run()
        if self._parts.enforces and self._is_split(uuid):
            # Nova's rollback would destroy the destination's part
            return self._hold(uuid, verdict.FAILED_POSTCOPY)
        self._parts.migrations.keep_context_dropped(instance)
        result, error = self._outcome(run)
        left = None if error else self._checked(self._left_behind, uuid)
        return self._look_after(instance, result, error, 'the rollback', left)

    def operation_failed(self, instance):
        """Hold a migration whose post-copy has failed.

        libvirt keeps its job (8.5 and newer), so Nova's monitor goes on.

        :param instance: a ``nova.objects.Instance``
        """
        if self._parts.enforces and self._is_split(instance.uuid):
            self._hold(instance.uuid, verdict.FAILED_POSTCOPY)

    def _is_split(self, uuid):
        return facts.guest_of(self._parts.jobs.observe(
            uuid, self._parts.options.call_timeout)) is facts.Guest.SPLIT

    @staticmethod
    def _outcome(run):
        try:
            return run(), None
        except Exception as e:
            return None, e

    def _left_behind(self, uuid):
        entry = self._parts.journal.entry(uuid)
        if entry is None:
            return None
        if self._parts.host.works_at(uuid, entry.destination):
            # it was asked to prepare, and did not answer in time
            return '%s at work for it' % entry.destination
        return self._parts.migrations.left_behind(entry)

    @staticmethod
    def _checked(look, *args):
        """What Nova has left; what cannot be found out counts as left."""
        try:
            return look(*args)
        except Exception as e:
            return 'something, perhaps: %s' % e

    def _look_after(self, instance, result, error, what, left):
        """Cross out what has ended well, and hold what has not.

        In report mode the error goes where stock Nova lets it go.
        """
        if error is None and left is None:
            self._end(instance)
            return result
        if not self._parts.enforces:
            if error is not None:
                raise error
            return result
        if error is None:
            reason = '%s left %s' % (what, left)
        else:
            reason = '%s failed: %s' % (what, error)
            LOG.error('The guard goes on with it: %s', reason,
                      instance=instance,
                      exc_info=(type(error), error, error.__traceback__))
        self._hold(instance.uuid, reason)
        return result

    def aborted(self, instance, migration_id):
        """Cross a migration out that was aborted in the queue.

        :param instance: a ``nova.objects.Instance``
        :param migration_id: the ID of the migration's record
        """
        try:
            entry = self._parts.journal.entry(instance.uuid)
            if (entry is not None and entry.phase == journals.PREPARING and
                    self._parts.host.status_of(
                        migration_id) == facts.CANCELLED):
                self._end(instance)
        except Exception as e:
            # the next start finds that nothing is left to be done
            LOG.warning('The aborted migration is not crossed out: %s', e,
                        instance=instance)

    def _end(self, instance):
        try:
            self._parts.journal.end(instance.uuid)
        except journals.JournalError as e:
            # the next start finds that nothing is left to be done
            LOG.error('%s', e, instance=instance)
