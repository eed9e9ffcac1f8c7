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

"""nova-compute dies while it makes an image of a running guest."""

import os

from tests.lab import base

#: MiB that the guest's disk has to be copied, without a limit under a second.
WRITTEN = 400


class LiveSnapshot(base.LabTestCase):
    """A guest on A whose disk is copied for an image."""

    def setUp(self):
        super(LiveSnapshot, self).setUp()
        self.server = self.boot('host-a')
        self.lab.stop(self.server)
        self.host = self.lab.hosts['host-a']
        self.host.fill_disk(self.server, WRITTEN)
        self.lab.start(self.server)

    def name(self, number):
        return 'image-%d-of-%s' % (number, self.server)

    def begin(self):
        self.lab.create_image(self.server, self.name(1))
        self.lab.wait_for_block_job(self.server, 'host-a')

    @property
    def folders(self):
        """What is in Nova's folder for images that are being made."""
        snapshots = self.host.instances / 'snapshots'
        return os.listdir(str(snapshots)) if snapshots.exists() else []

    def domain(self):
        return self.host.domains()[self.server]


class GuardedTestCase(LiveSnapshot):

    guard = True

    def test_killed(self):
        self.begin()
        before = self.lab.state(self.server, 'in mid copy')
        self.assertFalse(before.hosts['host-a'].domain['persistent'])
        self.lab.kill_compute('host-a')
        self.assertTrue(self.host.block_jobs(self.domain()['name']))
        self.lab.start_compute('host-a')
        self.lab.wait_until(
            lambda: self.lab.nova_says(self.server) == (
                'active', None, 'host-a'), self.server, 'is idle')
        after = self.lab.state(self.server, 'after the restart')
        self.assertEqual(['host-a'], after.running_on)
        self.assertTrue(after.hosts['host-a'].domain['persistent'])
        self.assertEqual({}, self.host.block_jobs(self.domain()['name']))
        self.assertEqual([], self.folders)
        self.assertEqual([], self.lab.images(self.name(1)))
        self.assertGreaterEqual(after.hosts['host-a'].disk,
                                before.hosts['host-a'].disk)
        self.must_be_usable()

    def must_be_usable(self):
        """The next image is made, and the next migration works."""
        self.lab.create_image(self.server, self.name(2))
        self.lab.wait_until(
            lambda: self.lab.images(self.name(2)) == ['active'], self.server,
            'has an image')
        self.lab.wait_until(
            lambda: self.lab.nova_says(self.server)[1] is None, self.server,
            'is idle')
        self.lab.live_migrate(self.server, 'host-b')
        self.assertEqual('completed', self.lab.finish_migration(self.server))


class StockTestCase(LiveSnapshot):

    guard = False

    def test_killed(self):
        """The job goes on behind an idle instance, and its domain is lost."""
        self.begin()
        self.lab.kill_compute('host-a')
        self.lab.start_compute('host-a')
        self.lab.wait_until(
            lambda: self.lab.nova_says(self.server) == (
                'active', None, 'host-a'), self.server, 'is idle')
        self.assertTrue(self.host.block_jobs(self.domain()['name']))
        self.assertFalse(self.domain()['persistent'])
        self.assertEqual(['queued'], self.lab.images(self.name(1)))
        self.assertNotEqual([], self.folders)
