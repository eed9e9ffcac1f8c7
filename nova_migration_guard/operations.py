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

LOG = logging.getLogger(__name__)


class Refused(Exception):
    """A migration does not start, or does not go on."""


class Operations(object):
    """The live migrations that leave one nova-compute's host.

    :param host: a :class:`nova_migration_guard.nova_host.NovaHost`
    :param migrations: a
        :class:`nova_migration_guard.nova_live_migration.LiveMigrations`
    :param actions: an
        :class:`nova_migration_guard.instance_actions.InstanceActions`
    :param jobs: a :class:`nova_migration_guard.libvirt_jobs.LibvirtJobs`
    :param journal: a :class:`nova_migration_guard.journal.Journal`
    :param hold: a callable that holds an instance: (uuid, reason)
    :param held: {UUID: :class:`nova_migration_guard.guard.Held`}
    :param options: the ``[migration_guard]`` options
    """

    def __init__(self, host, migrations, actions, jobs, journal, hold, held,
                 options):
        self._host = host
        self._migrations = migrations
        self._actions = actions
        self._jobs = jobs
        self._journal = journal
        self._hold = hold
        self._held = held
        self._options = options

    @property
    def _enforces(self):
        return self._options.mode == 'enforce'

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
            self._journal.begin(self._migrations.entry(
                context, instance, migration, dest, block_migration,
                migrate_data))
        except Exception as e:
            if self._must_be_written(e, instance):
                self._host.fail_migration(migration)
                self._refuse(context, instance, migration, str(e))
                return False
        return True

    def _reason_to_refuse(self, instance, migration):
        if not self._enforces:
            return None
        if instance.uuid in self._held:
            return 'the instance is held: %s' % (
                self._held[instance.uuid].reason)
        status = self._host.migration_status(migration)
        if status not in facts.OPEN_STATUSES:
            return ('the migration was ended (%s) before this host began '
                    'it' % status)
        return None

    def _must_be_written(self, error, instance):
        """Decide what a journal that cannot be written means."""
        required = self._enforces and self._options.journal_required
        log = LOG.error if required else LOG.warning
        log('The live migration %(does)s: %(error)s', {
            'does': 'does not begin' if required else
                    'goes on without the journal',
            'error': error}, instance=instance)
        return required

    def _refuse(self, context, instance, migration, reason):
        LOG.warning('The live migration is refused: %s.', reason,
                    instance=instance)
        fresh = self._host.instance(instance.uuid)
        if fresh is None:
            return self._migrations.abandon([migration])
        self._actions.fail(context, fresh, 'compute_live_migration', reason)
        if fresh.task_state not in (None, facts.MIGRATING) or (
                self._host.has_open_migration(fresh, migration)):
            # what is there now is not this migration's
            self._migrations.abandon([migration])
        else:
            self._migrations.undo(fresh, [migration])

    def prepared(self, instance, migrate_data, source_bdms):
        """Write down that the destination has prepared for a migration.

        :param source_bdms: the block device mappings from before that
        :raises Refused: when it must be written and cannot be
        """
        self._advance(instance, journals.PREPARED,
                      **self._migrations.prepared(migrate_data, source_bdms))

    def started(self, instance):
        """Write down that libvirt is about to be asked to migrate.

        :raises Refused: when it must be written and cannot be
        """
        changes = {}
        try:
            changes['domain_xml'] = self._jobs.xml(
                instance.uuid, self._options.call_timeout, inactive=True)
        except Exception as e:
            LOG.warning("The domain's definition is not in the journal: %s",
                        e, instance=instance)
        self._advance(instance, journals.STARTED, **changes)

    def _advance(self, instance, phase, **changes):
        try:
            self._journal.advance(instance.uuid, phase, **changes)
        except journals.JournalError as e:
            if self._must_be_written(e, instance):
                raise Refused(str(e))

    def post_migration(self, instance, dest, run):
        """Run Nova's post-migration, and look after what it leaves.

        :param dest: the destination's name
        :param run: a callable without arguments
        :returns: what it returns
        """
        uuid = instance.uuid
        if uuid in self._migrations.ending:
            return run()
        try:
            self._journal.advance(uuid, journals.POST_MIGRATION)
        except journals.JournalError as e:
            # nothing is as bad as not to go on from here
            LOG.error('%s', e, instance=instance)
        result, error = self._outcome(run)
        fresh = self._host.instance(uuid)
        if error is None and fresh is not None and fresh.host == dest:
            self._end(instance)
            return result
        self._look_after(instance, error, 'post-migration failed')

    def rollback(self, instance, run):
        """Run Nova's rollback, and look after what it leaves.

        :param run: a callable without arguments
        :returns: what it returns
        """
        uuid = instance.uuid
        if uuid in self._migrations.ending:
            return run()
        result, error = self._outcome(run)
        left = None
        if error is None:
            left = self._left_behind(uuid)
            if left is None:
                self._end(instance)
                return result
        self._look_after(instance, error, 'the rollback left %s' % left if left
                         else 'the rollback failed')
        return result

    @staticmethod
    def _outcome(run):
        try:
            return run(), None
        except Exception as e:
            return None, e

    def _left_behind(self, uuid):
        entry = self._journal.entry(uuid)
        return entry and self._migrations.left_behind(entry)

    def _look_after(self, instance, error, what):
        """Hold an instance, or let the error go where stock Nova lets it."""
        if not self._enforces:
            if error is not None:
                raise error
            return
        if error is not None:
            LOG.error('%(what)s; the guard goes on with it.',
                      {'what': what.capitalize()}, instance=instance,
                      exc_info=(type(error), error, error.__traceback__))
            what = '%s: %s' % (what, error)
        self._hold(instance.uuid, what)

    def aborted(self, instance, migration_id):
        """Cross a migration out that was aborted in the queue."""
        entry = self._journal.entry(instance.uuid)
        if (entry is not None and entry.phase == journals.PREPARING and
                self._host.status_of(migration_id) == 'cancelled'):
            self._end(instance)

    def _end(self, instance):
        try:
            self._journal.end(instance.uuid)
        except journals.JournalError as e:
            # the next start finds that nothing is left to be done
            LOG.error('%s', e, instance=instance)
