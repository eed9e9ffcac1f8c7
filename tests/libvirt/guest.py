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

"""Guests without an operating system, and what is done with them."""

import libvirt
import libvirt_qemu

from tests.libvirt import images
from tests.libvirt import waiting

# Seconds; each takes less than one on an idle machine.
TIMEOUT = 60
NOVA_NAMESPACE = 'http://openstack.org/xmlns/libvirt/nova/1.1'
VNC_PASSWORD = 'opensesa'  # noqa: S105

DOMAIN = """
<domain type='qemu'>
  <name>%(name)s</name>
  <uuid>%(uuid)s</uuid>
  <metadata>
    <nova:instance xmlns:nova='%(namespace)s'>
      <nova:name>guest</nova:name>
    </nova:instance>
  </metadata>
  <memory unit='MiB'>32</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type></os>
  <devices>
    %(disks)s
    <controller type='usb' model='none'/>
    <graphics type='vnc' passwd='%(password)s'>
      <listen type='socket' socket='%(folder)s/%(name)s.vnc'/>
    </graphics>
    <video><model type='none'/></video>
    <memballoon model='none'/>
  </devices>
</domain>
"""

DISK = """
<disk type='file' device='disk'>
  <driver name='qemu' type='qcow2'/>
  <source file='%s'/>
  <target dev='%s' bus='virtio'/>
  <alias name='ua-%s'/>
</disk>
"""


class Guest(object):
    """A guest that runs its firmware, and then waits.

    :param daemon: the :class:`tests.libvirt.daemon.Daemon` it runs in
    :param folder: of its images
    :param uuid: of its domain
    :param disks: {target name: :class:`tests.libvirt.images.Disk`}
    """

    def __init__(self, daemon, folder, uuid, disks):
        self.uuid = uuid
        self.disks = disks
        self._daemon = daemon
        self._folder = folder
        self._snapshots = 0
        self.xml = DOMAIN % {
            'name': 'instance-' + uuid[:8], 'uuid': uuid, 'folder': folder,
            'namespace': NOVA_NAMESPACE, 'password': VNC_PASSWORD,
            'disks': ''.join(DISK % (disk.top, dev, dev)
                             for dev, disk in sorted(disks.items()))}

    def start(self, persistent=True):
        """Start it.

        :param persistent: whether its domain is defined
        """
        connection = self._daemon.connect()
        if persistent:
            connection.defineXML(self.xml).create()
        else:
            connection.createXML(self.xml)

    @property
    def domain(self):
        """Its ``libvirt.virDomain``, on a connection of its own."""
        return self._daemon.connect().lookupByUUIDString(self.uuid)

    def write(self, dev, offset, byte, length):
        """Let it write to a disk.

        :param dev: the disk's target name
        :param offset: in bytes
        :param byte: what to write, over and over
        :param length: in bytes
        """
        said = libvirt_qemu.qemuMonitorCommand(
            self.domain, 'qemu-io -d /machine/peripheral/ua-%s/virtio-backend '
            '"write -P %d %d %d"' % (dev, byte, offset, length),
            libvirt_qemu.VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP)
        # how it went shows in the log of QEMU, and in the disk's content
        if said:
            raise AssertionError(said)
        self.disks[dev].note(offset, bytes([byte]) * length)

    def job_is_ready(self, dev):
        """Tell whether a block job has nothing left to copy."""
        job = self.domain.blockJobInfo(dev, 0)
        return bool(job) and 0 < job['end'] == job['cur']

    def snapshot(self, dev):
        """Make a live snapshot of a disk, from start to end, as Nova does.

        :param dev: the disk's target name
        :returns: the snapshot, a qcow2 image
        """
        domain = self.domain
        source = domain.XMLDesc(0)
        definition = domain.XMLDesc(
            libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE)
        self._snapshots += 1
        target = self._folder / ('snapshot-%d' % self._snapshots)
        backing = self.disks[dev].middle
        if str(backing) not in source:
            backing = self.disks[dev].base
        images.create(target, backing,
                      'raw' if backing.suffix == '.base' else 'qcow2')
        domain.undefine()
        domain.blockRebase(
            dev, str(target), 0, libvirt.VIR_DOMAIN_BLOCK_REBASE_COPY |
            libvirt.VIR_DOMAIN_BLOCK_REBASE_REUSE_EXT |
            libvirt.VIR_DOMAIN_BLOCK_REBASE_SHALLOW)
        waiting.until(lambda: self.job_is_ready(dev), TIMEOUT,
                      'the snapshot is done')
        domain.blockJobAbort(dev, 0)
        domain.connect().defineXML(definition)
        return target

    def migrate(self, destination):
        """Migrate it, with its disks shared.

        :param destination: a :class:`tests.libvirt.daemon.Daemon`
        """
        self.domain.migrateToURI3(
            destination.uri,
            {libvirt.VIR_MIGRATE_PARAM_URI: destination.migration_uri},
            libvirt.VIR_MIGRATE_LIVE | libvirt.VIR_MIGRATE_PEER2PEER |
            libvirt.VIR_MIGRATE_UNDEFINE_SOURCE |
            libvirt.VIR_MIGRATE_PERSIST_DEST | libvirt.VIR_MIGRATE_UNSAFE)
        self._daemon = destination

    def destroy(self):
        """Stop it, as a loss of power would."""
        self.domain.destroy()
