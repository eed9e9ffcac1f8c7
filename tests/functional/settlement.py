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

"""What the tests of settlements have in common."""

from tests.functional import cloud
from tests.functional import waiting

LEFT_BEHIND = 'the migration left something behind'


class SettlementTestCase(cloud.CloudTestCase):
    """A guest on A with a port and a volume."""

    def setUp(self):
        super(SettlementTestCase, self).setUp()
        self.enable_volumes()
        self._start_hosts()
        self.server = self._boot()
        self.volume = self.attach_volume(self.server)
        self.before = self.footprint(self.server)

    def _start_hosts(self):
        self.start_hosts('host-a', 'host-b', 'host-c')

    def _boot(self):
        return self.boot(
            'host-a', networks=[{'port': self.neutron.port_1['id']}])

    # ---- what must be true

    def must_be_as_before(self):
        if self.guard:
            # the destination cleans up when a cast has reached it
            self.wait_until_or_violation(
                lambda: not self._different(), LEFT_BEHIND, self._different)
        different = self._different()
        self.must(not different, LEFT_BEHIND, different)

    def _different(self):
        """{what: (before, now)} of what is not as it was before."""
        after = self.footprint(self.server)
        return {name: (self.before[name], after[name])
                for name in self.before
                if self.before[name] != after[name]}

    def must_migrate_to(self, host):
        job = self.begin_migration(self.server, host)
        job.complete()
        self.wait_until(
            lambda: self.migrations(self.server)[-1].status == 'completed' and
            not self.footprint(self.server)["migrations' allocations"],
            lambda: 'completed: %s' % self.footprint(self.server))
        self.must_be_on(host)

    def must_be_on(self, host):
        """The server is on a host, and nothing of it is anywhere else."""
        after = self.footprint(self.server)
        self.assertEqual(('active', None, host), after['nova'])
        self.assertEqual({host: 'running'}, after['guest'])
        self.must([host] == list(after['disks']) and
                  [host] == list(after['allocations']) and
                  not after["migrations' allocations"] and
                  not after['open records'] and
                  not after['migration context'], LEFT_BEHIND, after)
        for current, attachments in after.get('attachments', {}).values():
            self.must({current} == attachments, LEFT_BEHIND, after)
        for bindings in after['bindings'].values():
            self.assertIn([name for name, status in bindings.items()
                           if status == 'ACTIVE'], ([], [host]))
        self.assertNotIn(self.server['id'], self.world.ran_twice)

    def wait_until_or_violation(self, predicate, violation, observed=None):
        """Wait until something is so; if it never is, it is a violation.

        :param observed: a callable that says what was seen
        """
        try:
            self.wait_until(predicate, violation, timeout=15)
        except waiting.WaitTimeout:
            self.must(False, violation, observed() if observed else
                      self.where(self.server))

    def must_delete(self):
        """Delete the server, and see that nothing is left anywhere."""
        uuids = [self.server['id']] + [
            migration.uuid for migration in self.migrations(self.server)]
        self.api.delete_server(self.server['id'])
        self.wait_until(
            lambda: not any(self.where(self.server).values()), 'it is gone')
        self.wait_until(
            lambda: not any(self.allocations(uuid) for uuid in uuids),
            lambda: 'no allocations: %s' % {
                uuid: self.allocations(uuid) for uuid in uuids})
        self.assertEqual({}, self.disks(self.server))
        self.assertEqual([], self.ports(self.server))

    def must_live_on(self):
        """The next migrations work, to the same host and to a third one."""
        self.must_migrate_to('host-b')
        self.must_migrate_to('host-c')
        self.must_delete()
