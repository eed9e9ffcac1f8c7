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

"""What the tests have in common: two hosts, guests, and the guard's view."""

import pathlib
import uuid
from xml.etree import ElementTree

import fixtures
import libvirt
from oslotest import base

from nova_migration_guard import connections
from nova_migration_guard import domain_xml
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import workers
from tests.libvirt import client
from tests.libvirt import daemon
from tests.libvirt import guest
from tests.libvirt import images
from tests.libvirt import waiting

# Seconds; libvirt answers in milliseconds on an idle machine.
TIMEOUT = 60

BlockJobType = libvirt_jobs.BlockJobType


class TestCase(base.BaseTestCase):

    def setUp(self):
        super(TestCase, self).setUp()
        daemon.quiet()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.host = self.useFixture(daemon.Daemon('one'))
        self.jobs = self.guard_of(self.host)

    def guard_of(self, host):
        """Wire what looks at a host as the guard does."""
        return libvirt_jobs.LibvirtJobs(
            connections.Connections(host.connect, libvirt.libvirtError),
            libvirt.libvirtError, workers.Workers(8))

    def start_guest(self, *devs, **options):
        """Start a guest.

        :param devs: the target names of its disks; vda without any
        :param options: ``persistent=False`` for a transient domain;
            ``size`` of its disks, in bytes
        """
        size = options.get('size', images.SIZE)
        domain = str(uuid.uuid4())
        folder = self.folder / domain[:8]
        folder.mkdir()
        started = guest.Guest(
            self.host, folder, domain,
            {dev: images.Disk(folder, dev, size) for dev in devs or ['vda']})
        started.start(options.get('persistent', True))
        return started

    def start_job(self, started, job, disk='vda', **arguments):
        """Let a client start a job, and wait until the job is in mid way.

        :param started: the :class:`tests.libvirt.guest.Guest`
        :param job: the name of a function in :mod:`tests.libvirt.client`
        :param disk: the target name
        :param arguments: of that function
        :returns: a :class:`tests.libvirt.client.Client`
        """
        running = self.useFixture(client.Client(
            self.host.uri, started.uuid, job, disk=disk, **arguments))

        def in_mid_way():
            info = started.domain.blockJobInfo(disk, 0)
            return info and 0 < info['cur'] < info['end']
        waiting.until(in_mid_way, TIMEOUT, 'the job is in mid way')
        return running

    def leave_job(self, started, job, disk='vda', **arguments):
        """Let a client start a job, and kill it when the job is in mid way.

        The arguments are those of :meth:`start_job`.
        """
        self.start_job(started, job, disk, **arguments).kill()

    def leave_ready_job(self, started, job, **arguments):
        """Let a client start a job on vda; kill it when the job is ready.

        A job that is ready has copied everything, and waits to be told
        whether the guest is to go on with the copy. The arguments are those
        of :meth:`start_job`.
        """
        running = self.start_job(started, job, **arguments)
        started.domain.blockJobSetSpeed('vda', 0, 0)
        waiting.until(lambda: started.job_is_ready('vda'), TIMEOUT,
                      'the job is ready')
        running.kill()

    def wait_for_no_job(self, started):
        """Wait until no block job is seen; returns what is seen then."""
        return waiting.until(
            lambda: [seen for seen in [self.observe(started)]
                     if not seen.block_jobs], TIMEOUT, 'the job ends')[0]

    def observe(self, started):
        """What the guard sees of a guest; it must see everything."""
        seen = self.jobs.observe(started.uuid, TIMEOUT)
        self.assertEqual('', seen.trouble)
        return seen

    def abort(self, started, jobs):
        """Abort block jobs, which must be gone then."""
        seen = self.jobs.abort_block_jobs(started.uuid, jobs, TIMEOUT)
        self.assertEqual('', seen.trouble)
        self.assertEqual((), seen.block_jobs)
        self.assertFalse(seen.job.active)
        self.assertEqual(libvirt_jobs.State.RUNNING, seen.state)
        return seen

    def define_again(self, started):
        """Define a guest from what libvirt says that it runs."""
        read = self.jobs.xml(started.uuid, TIMEOUT, inactive=True,
                             secure=True)
        definition = domain_xml.without_mirrors(read)
        self.assertNotIn('<mirror', definition)
        running = self.observe(started)
        self.assertEqual([(disk.dev, disk.source) for disk in running.disks],
                         self.sources(definition))
        self.jobs.define(started.uuid, definition, TIMEOUT)
        self.assertTrue(self.observe(started).persistent)
        defined = self.jobs.xml(started.uuid, TIMEOUT, inactive=True,
                                secure=True)
        self.assertEqual([(disk.dev, disk.source) for disk in running.disks],
                         self.sources(defined))
        self.assertIn("passwd='%s'" % guest.VNC_PASSWORD, defined)
        self.assertIn('<nova:name>', defined)

    @staticmethod
    def sources(definition):
        """The images that the disks of a definition name."""
        return [(disk.find('target').get('dev'),
                 disk.find('source').get('file')) for disk in
                ElementTree.fromstring(definition).iterfind('devices/disk')]

    def assert_usable(self, started):
        """A guest can be snapshotted, migrated, stopped; its disks are right.

        It ends here.
        """
        devs = sorted(started.disks)
        for dev in devs:
            snapshot = started.snapshot(dev)
            self.assertEqual(started.disks[dev].digest,
                             images.digest(snapshot))
        other = self.useFixture(daemon.Daemon('two'))
        started.migrate(other)
        self.jobs.rest()
        seen = self.guard_of(other).observe(started.uuid, TIMEOUT)
        self.assertTrue(seen.persistent)
        self.assertEqual((), seen.block_jobs)
        self.assertEqual(libvirt_jobs.State.RUNNING, seen.state)
        started.destroy()
        for disk in seen.disks:
            for image in disk.chain:
                if not image.endswith('.base'):
                    images.check(image)
            self.assertEqual(started.disks[disk.dev].digest,
                             images.digest(disk.source))
        started.domain.create()
        again = self.guard_of(other).observe(started.uuid, TIMEOUT)
        self.assertEqual(seen.disks, again.disks)
