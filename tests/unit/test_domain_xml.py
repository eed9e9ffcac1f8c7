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

"""What is read out of a domain's XML.

The texts have the shape of what libvirt 9.0 prints.
"""

from oslotest import base

from nova_migration_guard import domain_xml


def domain(*disks):
    """A domain with these disks, and metadata of Nova's."""
    return """
<domain type='kvm'>
  <metadata>
    <nova:instance xmlns:nova='http://openstack.org/xmlns/libvirt/nova/1.1'>
      <nova:name>guest</nova:name><mirror>an element of this name</mirror>
    </nova:instance>
  </metadata>
  <devices>%s</devices>
</domain>""" % ''.join(disks)


FILE = """
<disk type='file' device='disk'>
  <driver name='qemu' type='qcow2' cache='none'/>
  <source file='/instances/guest/disk' index='1'/>
  %s
  <target dev='vda' bus='virtio'/>
</disk>"""

CHAIN = """
<backingStore type='file' index='2'>
  <format type='qcow2'/>
  <source file='/instances/guest/middle'/>
  <backingStore type='file' index='3'>
    <format type='raw'/>
    <source file='/instances/_base/image'/>
    <backingStore/>
  </backingStore>
</backingStore>"""

MIRROR = """
<mirror type='file' file='/copy' format='qcow2' job='copy' ready='yes'>
  <format type='qcow2'/>
  <source file='/copy' index='4'/>
  <backingStore type='file'>
    <format type='raw'/>
    <source file='/below/the/copy'/>
  </backingStore>
</mirror>"""

OLD_MIRROR = "<mirror file='/copy' format='qcow2' ready='yes'/>"

BLOCK_MIRROR = """
<mirror type='block' job='copy'>
  <format type='raw'/>
  <source dev='/dev/mapper/new'/>
</mirror>"""

BLOCK = """
<disk type='block' device='lun'>
  <driver name='qemu' type='raw'/>
  <source dev='/dev/mapper/old'/>
  <backingStore/>
  %s
  <target dev='sda' bus='scsi'/>
  <serial>2ae2a4e4-5f1c-4f0e-8c39-1c28d5b0a3f4</serial>
</disk>"""

RBD = """
<disk type='network' device='disk'>
  <driver name='qemu' type='raw'/>
  <auth username='cinder'><secret type='ceph' uuid='a-secret'/></auth>
  <source protocol='rbd' name='volumes/volume-1' index='1'>
    <host name='192.0.2.1' port='6789'/>
  </source>
  <target dev='vdb' bus='virtio'/>
  <serial>volume-1</serial>
</disk>"""

VOLUME = """
<disk type='volume'>
  <source pool='default' volume='disk-of-a-pool'/>
  <target dev='vdc' bus='virtio'/>
</disk>"""

MEDIA = """
<disk type='file' device='cdrom'>
  <source file='/instances/guest/disk.config'/>
  <target dev='hda' bus='ide'/>
</disk>
<disk type='file' device='floppy'><target dev='fda' bus='fdc'/></disk>"""

NVME = """
<disk type='nvme' device='disk'>
  <source type='pci' managed='yes' namespace='1'>
    <address domain='0x0000' bus='0x01' slot='0x00' function='0x0'/>
  </source>
  <target dev='vdd' bus='virtio'/>
</disk>"""

VHOST_USER = """
<disk type='vhostuser' device='disk'>
  <source type='unix' path='/run/vhost.sock'/>
  <target dev='vde' bus='virtio'/>
</disk>"""

NO_NAME = """
<disk type='network' device='disk'>
  <source protocol='nbd'><host transport='unix' socket='/nbd'/></source>
  <target dev='vdf' bus='virtio'/>
</disk>"""


class DisksTestCase(base.BaseTestCase):

    def one(self, disk):
        disks = domain_xml.disks(domain(disk))
        self.assertEqual(1, len(disks))
        return disks[0]

    def test_file(self):
        disk = self.one(FILE % '')
        self.assertEqual('vda', disk.dev)
        self.assertIsNone(disk.serial)
        self.assertIsNone(disk.mirror)
        self.assertEqual(('/instances/guest/disk',), disk.chain)
        self.assertEqual('/instances/guest/disk', disk.source)

    def test_backing_chain(self):
        disk = self.one(FILE % CHAIN)
        self.assertEqual(('/instances/guest/disk', '/instances/guest/middle',
                          '/instances/_base/image'), disk.chain)

    def test_mirror(self):
        disk = self.one(FILE % (CHAIN + MIRROR))
        self.assertEqual('/copy', disk.mirror)
        self.assertEqual(3, len(disk.chain))

    def test_mirror_of_an_old_libvirt(self):
        self.assertEqual('/copy', self.one(FILE % OLD_MIRROR).mirror)

    def test_block_device(self):
        disk = self.one(BLOCK % BLOCK_MIRROR)
        self.assertEqual('sda', disk.dev)
        self.assertEqual('2ae2a4e4-5f1c-4f0e-8c39-1c28d5b0a3f4', disk.serial)
        self.assertEqual(('/dev/mapper/old',), disk.chain)
        self.assertEqual('/dev/mapper/new', disk.mirror)

    def test_rbd(self):
        disk = self.one(RBD)
        self.assertEqual('volumes/volume-1', disk.source)
        self.assertEqual('volume-1', disk.serial)

    def test_volume_of_a_pool(self):
        self.assertEqual('disk-of-a-pool', self.one(VOLUME).source)

    def test_other_sources(self):
        self.assertEqual('1', self.one(NVME).source)
        self.assertEqual('/run/vhost.sock', self.one(VHOST_USER).source)

    def test_image_without_a_name(self):
        disk = self.one(NO_NAME)
        self.assertEqual((), disk.chain)
        self.assertIsNone(disk.source)

    def test_media_drives_are_left_out(self):
        self.assertEqual(['vda', 'vdb'], [
            disk.dev for disk in domain_xml.disks(
                domain(FILE % '', MEDIA, RBD))])

    def test_has(self):
        disk = self.one(FILE % (CHAIN + MIRROR))
        for name in ('disk', '/elsewhere/middle', '/instances/_base/image'):
            self.assertTrue(disk.has(name))
        for name in ('/copy', 'instances', 'dis'):
            self.assertFalse(disk.has(name))


class WithoutMirrorsTestCase(base.BaseTestCase):

    def test_mirrors_are_left_out(self):
        xml = domain_xml.without_mirrors(
            domain(FILE % (CHAIN + MIRROR), BLOCK % BLOCK_MIRROR, RBD))
        for name in ('/copy', '/below/the/copy', '/dev/mapper/new'):
            self.assertNotIn(name, xml)
        self.assertEqual(
            domain_xml.disks(domain(FILE % CHAIN, BLOCK % '', RBD)),
            domain_xml.disks(xml))

    def test_nothing_else_changes(self):
        xml = domain_xml.without_mirrors(domain(FILE % OLD_MIRROR))
        self.assertIn('<mirror>an element of this name</mirror>', xml)
        self.assertIn('<nova:instance xmlns:nova="http://openstack.org/'
                      'xmlns/libvirt/nova/1.1">', xml)
        self.assertIn('<nova:name>guest</nova:name>', xml)
