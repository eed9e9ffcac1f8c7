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

"""What cannot be settled now is held, and settled later."""

import logging
import pathlib
import threading

import fixtures
from keystoneauth1 import exceptions as ks_exc
from nova.compute import rpcapi
from nova import context
from nova import exception
from nova import objects
from nova.scheduler.client import report
from nova.virt.libvirt import driver
from nova.volume import cinder
import oslo_messaging
from oslo_serialization import jsonutils

from tests.functional import crashes
from tests.functional import migration_job
from tests.functional import releases
from tests.functional import settlement
from tests.functional import wrapping

neutron = releases.neutron
HIDDEN = 'open-sesame-1234'


def _full_at(phase):
    """A disk without room for an entry of a phase."""
    from nova_migration_guard import journal

    def advance(call, written, uuid, reached, *args):
        if reached == phase:
            raise journal.JournalError('No space left on device')
        return call()
    return advance


class HeldTestCase(settlement.SettlementTestCase):

    GUARD = True

    def away(self, error, *methods):
        """See :class:`~tests.functional.crashes.Away`."""
        return self.useFixture(crashes.Away(error, *methods))

    def must_be_held(self, why=None):
        says = self.nova_says(self.server)
        self.assertEqual(('migrating', 'host-a'),
                         (says.task_state, says.host))
        self.assertEqual([self.server['id']], list(self.held('host-a')))
        self.assertTrue(self.refused(self.live_migrate, self.server,
                                     'host-c'))
        if why:
            self.assertIn(why, self.held('host-a')[self.server['id']].reason)
        self.guard_of('host-a').settle_held()
        self.assertEqual([self.server['id']], list(self.held('host-a')))

    def actions(self):
        """{name: [(event, result)]} of the server's actions."""
        found = {}
        for action in self.api.get_instance_actions(self.server['id']):
            events = self.api.api_get(
                '/servers/%s/os-instance-actions/%s' % (
                    self.server['id'], action['request_id'])).body[
                        'instanceAction']['events']
            found[action['action']] = [
                (event['event'], event['result']) for event in events]
        return found


class ServicesAway(HeldTestCase):
    """A service does not answer while the migration is rolled back."""

    def _test(self, outage, why=None):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        job.fail()
        outage = outage()
        self.start_compute('host-a')
        self.must_be_held(why)
        outage.come_back()
        self.settle('host-a')
        self.must_be_as_before()
        self.must_live_on()

    def test_cinder(self):
        self._test(lambda: self.away(
            exception.CinderConnectionFailed(reason='away'),
            (cinder.API, 'attachment_delete')), 'away')

    def test_neutron(self):
        self._test(lambda: self.away(
            exception.PortBindingDeletionFailed(port_id='x', host='host-b'),
            (neutron.API, 'setup_networks_on_host')))

    def test_placement(self):
        self._test(lambda: self.away(
            ks_exc.ConnectFailure('Placement is away'),
            (report.SchedulerReportClient, 'get_allocs_for_consumer')),
            'Placement is away')

    def test_conductor(self):
        self._test(lambda: self.away(
            exception.NovaException('the conductor is away'),
            (objects.InstanceAction, 'action_start'),
            (objects.Migration, 'save')), 'the conductor is away')

    def test_destination(self):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-b')
        self.kill_compute('host-a')
        job.fail()
        self.start_compute('host-a')
        self.must_be_held('host-b')
        self.start_compute('host-b')
        self.settle('host-a')
        self.must_be_as_before()
        self.must_live_on()

    def test_request_when_it_is_settled_and_not_known_to_be(self):
        """An attempt takes longer than it may, and ends well in the end."""
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        job.fail()
        outage = self.away(exception.CinderConnectionFailed(reason='away'),
                           (cinder.API, 'attachment_delete'))
        self.start_compute('host-a')
        self.must_be_held('away')
        outage.come_back()
        self.guard_of('host-a')._settler.settle(self.server['id'], 5)
        self.must_be_as_before()
        self.assertEqual([self.server['id']], list(self.held('host-a')))
        self.must_live_on()

    def test_settled_while_a_request_is_on_its_way(self):
        """The same, and the next attempt comes before the request does."""
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        job.fail()
        outage = self.away(exception.CinderConnectionFailed(reason='away'),
                           (cinder.API, 'attachment_delete'))
        self.start_compute('host-a')
        self.must_be_held('away')
        outage.come_back()
        self.guard_of('host-a')._settler.settle(self.server['id'], 5)
        late = self.useFixture(crashes.LateCall(
            rpcapi.ComputeAPI, 'live_migration'))
        self.live_migrate(self.server, 'host-b')
        late.wait()
        self.settle('host-a')
        late.arrive()
        self.wait_for_job(self.server).complete()
        self.wait_for_server(self.server, lambda server: (
            server['OS-EXT-SRV-ATTR:host'] == 'host-b' and
            server['status'] == 'ACTIVE'))

    def test_it_is_shown_in_the_actions(self):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-b')
        self.kill_compute('host-a')
        job.fail()
        self.start_compute('host-a')
        self.guard_of('host-a').settle_held()
        self.assertEqual(
            [('compute_migration_guard_hold', 'Error')],
            self.actions()['migration_guard_hold'])
        self.start_compute('host-b')
        self.settle('host-a')
        self.assertIn(
            ('compute_migration_guard_roll_back', 'Success'),
            self.actions()['migration_guard_roll_back'])


class NobodyRestarted(HeldTestCase):
    """nova-compute on A lives on, and the migration goes wrong."""

    def _break(self, end, owner, name, error):
        """Let a method fail from mid migration on, and the migration end.

        :param end: how it ends, a method of the MigrationJob
        """
        job = self.begin_migration(self.server, 'host-b')
        self.outage = self.away(error, (owner, name))
        end(job)
        self.wait_until(lambda: self.held('host-a'), 'it is held')

    def _must_be_rolled_back(self):
        self.outage.come_back()
        self.settle('host-a')
        self.must_be_as_before()
        self.must_live_on()

    def _must_be_finished(self):
        self.outage.come_back()
        self.settle('host-a')
        self.must_be_on('host-b')
        self.must_migrate_to('host-c')
        self.must_delete()

    def test_destination_is_away_at_switch_over(self):
        self._break(migration_job.MigrationJob.complete, rpcapi.ComputeAPI,
                    'post_live_migration_at_destination',
                    exception.NovaException('no answer from host-b'))
        self.assertEqual(('active', 'migrating', 'host-a'),
                         self.nova_says(self.server))
        self._must_be_finished()

    def test_post_migration_fails_on_the_source(self):
        self._break(migration_job.MigrationJob.complete, neutron.API,
                    'migrate_instance_start',
                    exception.NovaException('Neutron is away'))
        self._must_be_finished()

    def test_rollback_fails(self):
        self._break(migration_job.MigrationJob.fail, neutron.API,
                    'setup_networks_on_host',
                    exception.NovaException('Neutron is away'))
        self._must_be_rolled_back()

    def test_destination_prepares_for_too_long(self):
        """Nova rolls back while the destination goes on."""
        stop = self.stop_at('host-b', driver.LibvirtDriver,
                            'pre_live_migration')

        def time_out(call, *args):
            threading.Thread(target=call).start()
            stop.wait()
            raise oslo_messaging.MessagingTimeout('no answer from host-b')
        with fixtures.MockPatchObject(
                rpcapi.ComputeAPI, 'pre_live_migration', wrapping.Wrapped(
                    rpcapi.ComputeAPI, 'pre_live_migration', time_out)):
            self.live_migrate(self.server, 'host-b')
            self.wait_until(lambda: self.held('host-a'), 'it is held')
        self.guard_of('host-a').settle_held()
        self.must_be_held('it still works for the migration')
        stop.go_on()
        self.settle('host-a')
        self.must_be_as_before()
        self.must_live_on()

    def test_rollback_leaves_an_attachment(self):
        """Nova logs what Cinder answers, and goes on."""
        self._break(migration_job.MigrationJob.fail, cinder.API,
                    'attachment_delete',
                    exception.CinderConnectionFailed(reason='away'))
        self._must_be_rolled_back()


class NoEntry(HeldTestCase):
    """The journal is lost while a guest with a volume migrates."""

    def _lose_journal(self):
        self.entry, = self.journaled('host-a')
        self.content = self.entry.read_text()
        self.entry.unlink()

    def _must_be_held_and_left_alone(self):
        """Cinder has one attachment more than can be told apart."""
        stray = {'id': 'stray', 'instance_uuid': self.server['id'],
                 'connector': None}
        self.cinder.volume_to_attachment[self.volume]['stray'] = stray
        before = self.footprint(self.server)['attachments']
        self.start_compute('host-a')
        self.guard_of('host-a').settle_held()
        self.must_be_held("the source's attachment of volume %s cannot be "
                          "told from the destination's" % self.volume)
        self.assertIn(('compute_migration_guard_hold', 'Error'),
                      self.actions()['migration_guard_hold'])
        self.assertEqual(before, self.footprint(self.server)['attachments'])
        del self.cinder.volume_to_attachment[self.volume]['stray']

    def _settle(self):
        if not releases.attachments_can_be_listed():
            # then only the entry tells
            self.guard_of('host-a').settle_held()
            self.must_be_held('attachment of volume')
            self.entry.write_text(self.content)
        self.settle('host-a')

    def test_roll_back(self):
        self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self._lose_journal()
        self._must_be_held_and_left_alone()
        self._settle()
        self.must_be_as_before()
        self.must_live_on()

    def test_finish(self):
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self._lose_journal()
        job.complete()
        self._must_be_held_and_left_alone()
        self._settle()
        self.must_be_on('host-b')
        self.must_migrate_to('host-c')
        self.must_delete()


class Journal(HeldTestCase):
    """Live migrations are written down before they begin."""

    def test_written_down_and_crossed_out(self):
        job = self.begin_migration(self.server, 'host-b')
        self.assertEqual([self.server['id'] + '.json'],
                         [path.name for path in self.journaled('host-a')])
        job.complete()
        self.wait_until(lambda: not self.journaled('host-a'),
                        'it is crossed out')
        job = self.begin_migration(self.server, 'host-c')
        self.assertEqual(1, len(self.journaled('host-b')))
        job.fail()
        self.wait_until(lambda: not self.journaled('host-b'),
                        'it is crossed out')

    def _break(self):
        """Let there be a file where the journal's folder should be."""
        self.folder = pathlib.Path(self.journals, 'host-a')
        self.folder.rename(str(self.folder) + '.moved')
        self.folder.write_text('no folder')

    def _mend(self):
        self.folder.unlink()

    def test_no_migration_without_it(self):
        self._break()
        self.live_migrate(self.server, 'host-b')
        self.wait_until(lambda: self.migration_statuses(self.server) ==
                        [('host-b', 'error')], 'it is refused')
        self.wait_until(lambda: not self.nova_says(self.server).task_state,
                        'the instance is idle')
        self.assertEqual([], self.world.jobs)
        self.must_be_as_before()
        fault = objects.InstanceFault.get_latest_for_instance(
            context.get_admin_context(), self.server['id'])
        self.assertIn(self.journals, fault.message)
        self._mend()
        self.must_live_on()

    def test_disk_is_full_when_it_goes_on(self):
        """Nova rolls a migration back that it has not begun."""
        from nova_migration_guard import journal
        for phase in (journal.PREPARED, journal.STARTED):
            with fixtures.MockPatchObject(
                    journal.Journal, 'advance', wrapping.Wrapped(
                        journal.Journal, 'advance', _full_at(phase))):
                self.live_migrate(self.server, 'host-b')
                self.wait_until(
                    lambda: not self.nova_says(self.server).task_state and
                    self.migrations(self.server)[-1].status in (
                        'error', 'failed'),
                    lambda: self.migration_statuses(self.server))
            self.assertEqual([], self.world.jobs)
            self.must_be_as_before()
            self.assertEqual([], self.journaled('host-a'))
        self.must_live_on()

    def test_migration_without_it(self):
        self.flags(journal_required=False, group='migration_guard')
        self._break()
        self.must_migrate_to('host-b')

    def test_secrets_are_not_logged(self):
        for bdm in self._volume_bdms(self.server):
            info = jsonutils.loads(bdm.connection_info)
            info['data']['auth_password'] = HIDDEN
            bdm.connection_info = jsonutils.dumps(info)
            bdm.save()
        log = self.useFixture(fixtures.FakeLogger(
            level=logging.DEBUG, nuke_handlers=False))
        job = self.begin_migration(self.server, 'host-b')
        self.kill_compute('host-a')
        self.assertIn(HIDDEN, self.journaled('host-a')[0].read_text())
        job.fail()
        outage = self.away(
            exception.CinderConnectionFailed(reason='away'),
            (cinder.API, 'attachment_delete'))
        self.start_compute('host-a')
        self.must_be_held()
        outage.come_back()
        self.settle('host-a')
        self.must_be_as_before()
        self.assertIn('roll the migration back', log.output)
        self.assertNotIn(HIDDEN, log.output)
