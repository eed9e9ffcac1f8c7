# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The model itself: what was measured with a real libvirt holds for it."""

import threading

import fixtures
from oslotest import base

from tests.functional import cloud
from tests.functional import hypervisor
from tests.functional import libvirt_api as api
from tests.functional import libvirt_client
from tests.functional import process
from tests.functional import releases
from tests.functional import waiting

UUID = '6f2b6f8e-6e2e-4b0c-9b1e-0d3c5f5e7a10'
XML = """
<domain type='kvm'>
  <name>guest</name><uuid>%s</uuid><memory>1024</memory><vcpu>1</vcpu>
  <os><type arch='x86_64'>hvm</type></os>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2'/>
      <source file='/disk'/><target dev='vda' bus='virtio'/>
    </disk>
    <hostdev mode='subsystem' type='pci' managed='yes'><source>
      <address domain='0x0000' bus='0x81' slot='0x00' function='0x1'/>
    </source></hostdev>
  </devices>
</domain>
""" % UUID
FLAGS = (api.MIGRATE_PERSIST_DEST | api.MIGRATE_UNDEFINE_SOURCE |
         api.MIGRATE_NON_SHARED_INC)


class ModelTestCase(base.BaseTestCase):
    """Two hypervisors and a client of the first, without Nova."""

    def setUp(self):
        super(ModelTestCase, self).setUp()
        self.useFixture(api.RealNumbers())
        self.world = hypervisor.World(
            self.useFixture(fixtures.TempDir()).path)
        self.addCleanup(self.world.end)
        self.a, self.b = (
            self.world.add(host, releases.connection(host))
            for host in ('host-a', 'host-b'))
        self.guest = self.a.define(XML)
        self.guest.create()
        self.a.disks.create(UUID, 'complete')
        self.client = self._client()
        self.domain = self.client.lookupByUUIDString(UUID)

    def _client(self):
        return libvirt_client.LibvirtClient(
            process.ComputeProcess(self.world, self.a), self.a)

    def _migrate(self):
        return self.a.migrate(self.guest, 'host-b', self.guest.XMLDesc(0),
                              FLAGS)

    def _error(self, code, function, *args):
        found = self.assertRaises(releases.fakelibvirt.libvirtError,
                                  function, *args)
        self.assertEqual(code, found.get_error_code())

    def test_job_runs(self):
        job = self._migrate()
        job.copied(40)
        self.assertEqual({'host-a': 'running', 'host-b': 'paused'},
                         self.world.where(UUID))
        stats = self.domain.jobStats(0)
        self.assertEqual((2, 5), (stats['type'], stats['operation']))
        self.assertEqual(2, self.domain.blockJobInfo('vda', 0)['type'])
        self.assertEqual([api.PAUSED, api.PAUSED_MIGRATION],
                         self.b.domains[UUID].state(0))
        self.assertEqual('partial 40 %', self.b.disks.get(UUID))
        self._error(84, self.b.domains[UUID].jobStats, 0)
        self._error(55, self._migrate)
        self._error(68, self.domain.undefine)

    def test_job_completes(self):
        self._migrate().complete()
        self.assertEqual({'host-b': 'running'}, self.world.where(UUID))
        self.assertTrue(self.b.domains[UUID].isPersistent())
        self.assertEqual('complete', self.b.disks.get(UUID))
        self.assertEqual(['0000:81:00.1'],
                         self.b.domains[UUID].pci_addresses())
        self._error(42, self.domain.jobStats, 0)
        self.assertEqual(set(), self.world.ran_twice)

    def test_abort(self):
        job = self._migrate()
        job.copied(40)
        self.domain.abortJob()
        self.assertEqual('cancelled', job.outcome)
        self.assertEqual({'host-a': 'running'}, self.world.where(UUID))
        self.assertEqual({'type': 0}, self.domain.jobStats(0))
        self.assertEqual({}, self.domain.blockJobInfo('vda', 0))
        self.assertEqual('partial 40 %', self.b.disks.get(UUID))
        self._error(55, self.domain.abortJob)

    def test_abort_resumes_a_paused_guest(self):
        self.guest.suspend()
        self._migrate()
        self.domain.abortJob()
        self.assertEqual([api.RUNNING, api.RUNNING_MIGRATION_CANCELED],
                         self.domain.state(0))

    def test_postcopy(self):
        job = self._migrate()
        job.switch_to_postcopy()
        self._error(55, self.domain.abortJob)
        self.assertEqual([api.PAUSED, api.PAUSED_POSTCOPY],
                         self.domain.state(0))
        job.complete()
        self.assertEqual({'host-b': 'running'}, self.world.where(UUID))

    def test_abort_that_lingers(self):
        self.a.abort_lingers()
        job = self._migrate()
        self.domain.abortJob()
        self.assertTrue(job.running)
        self.assertEqual(5, self.domain.jobStats(0)['type'])

    def test_libvirtd_dies(self):
        job = self._migrate()
        self.a.libvirtd_dies()
        self.assertEqual('failed', job.outcome)
        self._error(38, self.domain.state, 0)
        self.a.libvirtd_is_back()
        self.assertEqual({'host-a': 'running'}, self.world.where(UUID))

    def test_second_qemu_is_noticed(self):
        self._migrate().complete()
        self.a.define(XML).create()
        self.assertEqual({UUID}, self.world.ran_twice)

    def _in_thread(self, function, *args):
        ended = []

        def run():
            function(*args)
            ended.append(True)
        thread = threading.Thread(target=run)
        thread.daemon = True
        thread.start()
        return ended

    def test_calls_of_a_killed_process_never_return(self):
        ended = self._in_thread(
            self.domain.migrateToURI3, 'qemu+tcp://host-b/system',
            {'destination_xml': self.guest.XMLDesc(0)}, FLAGS)
        job = waiting.wait_until(lambda: self.world.running_job(UUID), 'job')
        self.client.process.alive = False
        asked = self._in_thread(self.domain.state, 0)
        job.complete()
        other = self._client()
        self.assertEqual([], other.listAllDomains(0))
        self.world.end()
        self.assertEqual(([], []), (ended, asked))

    def test_monitor_hangs(self):
        self._migrate()
        self.guest.hung = True
        asked = self._in_thread(self.domain.jobStats, 0)
        waiting.wait_until(lambda: self.world.blocked, 'the call blocks')
        self.assertEqual(api.RUNNING, self.domain.state(0)[0])
        self.assertEqual(api.RUNNING, self.domain.info()[0])
        self.assertEqual([], asked)
        self.guest.hung = False
        waiting.wait_until(lambda: asked, 'the call returns')


class KillTestCase(cloud.CloudTestCase):
    """SIGKILL for a nova-compute."""

    def test_nothing_goes_on(self):
        """What the dead one had begun is left as it was."""
        self.start_hosts('host-a', 'host-b')
        server = self.boot('host-a')
        job = self.begin_migration(server, 'host-b')
        before = self.nova_says(server), self.migration_statuses(server)
        self.kill_compute('host-a')
        job.complete()
        # no event says that nothing happens; its monitor polls every 0.5 s
        self.assertRaises(
            waiting.WaitTimeout, self.wait_until,
            lambda: before != (self.nova_says(server),
                               self.migration_statuses(server)),
            'a change', timeout=1.5)
        self.assertEqual('complete', self.disks(server)['host-a'])
