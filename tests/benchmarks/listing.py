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

"""What the guard asks of a real libvirt when nova-compute starts.

Beside a bare loop of the same calls, which is what they cost on that libvirt
at the least. Without Nova; the guests run no operating system, and wait.
``NMG_DOMAINS`` and ``NMG_ROUNDS`` say otherwise how many there are, and how
often each is run.
"""

import os

import libvirt

from tests.benchmarks import measuring
from tests.libvirt import base

DOMAINS = int(os.environ.get('NMG_DOMAINS', '200'))
ROUNDS = int(os.environ.get('NMG_ROUNDS', '11'))

# Seconds that a domain gets to answer, and all of them together: by default
# as [migration_guard] has it.
TIMEOUT = 10
BUDGET = 60

DOMAIN = """
<domain type='qemu'>
  <name>%(name)s</name>
  <uuid>%(uuid)s</uuid>
  <memory unit='MiB'>16</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type></os>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='%(image)s'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <controller type='usb' model='none'/>
    <video><model type='none'/></video>
    <memballoon model='none'/>
  </devices>
</domain>
"""


class Listing(base.TestCase):

    def setUp(self):
        super(Listing, self).setUp()
        connection = self.host.connect()
        for number in range(DOMAINS):
            image = self.folder / ('disk-%d' % number)
            with open(str(image), 'wb') as stream:
                stream.truncate(1024 * 1024)
            connection.defineXML(DOMAIN % {
                'name': 'guest-%d' % number, 'image': image,
                'uuid': '00000000-0000-0000-0000-%012d' % number,
            }).createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED)
        self.connection = connection

    def _bare(self):
        """The same calls one after the other, and nothing else."""
        for domain in self.connection.listAllDomains(0):
            domain = self.connection.lookupByUUIDString(domain.UUIDString())
            domain.XMLDesc(0)
            domain.jobStats(0)
            domain.blockJobInfo('vda', 0)
        self.connection.listAllDomains(
            libvirt.VIR_CONNECT_LIST_DOMAINS_TRANSIENT)
        self.connection.getAllDomainStats(libvirt.VIR_DOMAIN_STATS_STATE)

    def _guard(self):
        """As a start does of domains with which nothing was begun."""
        seen = self.jobs.survey((), set(), TIMEOUT, BUDGET)
        self.jobs.rest()
        self.assertEqual(DOMAINS, len(seen))
        return seen

    def test_idle(self):
        for seen in self._guard().values():
            self.assertEqual('', seen.trouble)
            self.assertEqual((), seen.block_jobs)
        measuring.write('listing', size=DOMAINS, **measuring.summary(
            measuring.turn_about(self._bare, self._guard, ROUNDS)))
