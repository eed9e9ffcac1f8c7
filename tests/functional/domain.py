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

"""A domain of the model: what QEMU runs, or libvirt only has the XML of."""

import copy

from lxml import etree

from tests.functional import block_job
from tests.functional import libvirt_api as api
from tests.functional import releases


def _text(xml):
    return xml.decode() if isinstance(xml, bytes) else xml


def _completed(tree):
    """What libvirt gives a domain's devices by itself.

    A name, which device removal goes by, and an address in the guest, which
    migration keeps.
    """
    slot = 1
    for kind, prefix in (('interface', 'net'), ('hostdev', 'hostdev'),
                         ('disk', 'disk')):
        for number, device in enumerate(tree.findall('./devices/' + kind)):
            if device.find('alias') is None:
                etree.SubElement(device, 'alias',
                                 name='%s%d' % (prefix, number))
            if device.find('address') is None:
                etree.SubElement(
                    device, 'address', type='pci', domain='0x0000',
                    bus='0x00', slot='0x%02x' % slot, function='0x0')
            slot += 1
    return tree


def _address(device):
    """(domain, bus, slot, function) of a passed-through PCI device."""
    address = device.find('./source/address')
    if address is None or address.get('bus') is None:
        return None
    return tuple(int(address.get(name), 16)
                 for name in ('domain', 'bus', 'slot', 'function'))


def _identity(device):
    """What tells one device of a domain from another of its kind."""
    if device.tag == 'interface':
        return device.find('mac').get('address').lower()
    if device.tag == 'disk':
        return device.find('target').get('dev')
    return _address(device)


class Domain(object):
    """A domain on one hypervisor, with libvirt's methods for it.

    It keeps the XML that it was given, because the fakes of several releases
    forget what these tests are about (PCI devices, for one). What it does not
    know itself it leaves to the fake of Nova's fixtures.

    :param hypervisor: the :class:`~tests.functional.hypervisor.Hypervisor`
    :param xml: the domain's definition
    """

    def __init__(self, hypervisor, xml):
        self.hypervisor = hypervisor
        # what runs, and what would be started next
        self._live = self._config = _completed(
            etree.fromstring(_text(xml)))
        self.uuid = self._live.findtext('uuid')
        self._state_and_reason = (api.SHUTOFF, api.SHUTOFF_UNKNOWN)
        self.persistent = True
        self.managed_save = False
        #: the MigrationJob that brings the guest here, until it has ended
        self.incoming = None
        #: the MigrationJob that takes the guest away, until it has ended
        self.outgoing = None
        #: {target name: :class:`~tests.functional.block_job.BlockJob`}
        self.block_jobs = {}
        #: how often the guest's file systems were thawed less than frozen
        self.frozen = 0
        #: whether its QEMU monitor answers
        self.hung = False
        self._fake = releases.fakelibvirt.Domain(
            hypervisor.connection, self.XMLDesc(0))

    def __getattr__(self, name):
        if name.startswith('_'):
            raise AttributeError(name)
        return getattr(self._fake, name)

    @property
    def state_and_reason(self):
        return self._state_and_reason

    @state_and_reason.setter
    def state_and_reason(self, value):
        self._state_and_reason = value
        self.hypervisor.world.look_for_twins(self.uuid)

    @property
    def active(self):
        return self.state_and_reason[0] != api.SHUTOFF

    @property
    def running(self):
        return self.state_and_reason[0] == api.RUNNING

    def redefine(self, xml):
        """defineXML for a domain that exists: what runs goes on running."""
        self._config = _completed(etree.fromstring(_text(xml)))
        self.persistent = True

    def start(self, state, reason):
        """Let QEMU run what is defined."""
        self._live = copy.deepcopy(self._config)
        self.state_and_reason = (state, reason)
        self.managed_save = False

    def disks(self):
        """The target names of the disks that hold data."""
        return [disk.find('target').get('dev')
                for disk in self._current().findall('./devices/disk')
                if disk.get('device', 'disk') == 'disk']

    def has_volume(self, volume_id):
        """Whether the guest has a volume of Cinder's."""
        return any(disk.findtext('serial') == volume_id
                   for disk in self._current().findall('./devices/disk'))

    def pci_addresses(self):
        """The host's PCI devices that the guest has, as '0000:81:00.1'."""
        devices = (self._current().findall('./devices/hostdev') +
                   self._current().findall('./devices/interface'))
        return sorted('%04x:%02x:%02x.%x' % address for address in
                      (_address(device) for device in devices) if address)

    def _current(self):
        return self._live if self.active else self._config

    def _affected(self, flags):
        """The definitions that a call changes, by virDomainModification."""
        trees = []
        if flags & 1:
            trees.append(self._live)
        if flags & 2:
            trees.append(self._config)
        return trees or [self._current()]

    # ---- libvirt's methods

    def name(self):
        return self._current().findtext('name')

    def UUIDString(self):
        return self.uuid

    def ID(self):
        return self.hypervisor.number_of(self) if self.active else -1

    def state(self, flags=0):
        return list(self.state_and_reason)

    def info(self):
        memory = int(self._current().findtext('memory'))
        return [self.state_and_reason[0], memory, memory,
                int(self._current().findtext('vcpu')), 123456789]

    def isActive(self):
        return int(self.active)

    def isPersistent(self):
        return int(self.persistent)

    def XMLDesc(self, flags=0):
        # 2: VIR_DOMAIN_XML_INACTIVE
        tree = self._config if flags & 2 else self._current()
        return etree.tostring(tree, encoding='unicode')

    def create(self):
        return self.createWithFlags(0)

    def createWithFlags(self, flags=0):
        if self.active:
            raise api.error(api.ERR_OPERATION_INVALID,
                            'Requested operation is not valid: domain is '
                            'already running')
        self.start(api.RUNNING, api.RUNNING_BOOTED)
        return 0

    def destroy(self):
        return self._stop(api.SHUTOFF_DESTROYED)

    def destroyFlags(self, flags=0):
        return self.destroy()

    def shutdown(self):
        return self._stop(api.SHUTOFF_SHUTDOWN)

    def lose_power(self):
        """What is left when its host is up again."""
        self._stop(api.SHUTOFF_UNKNOWN)

    def _stop(self, reason):
        if not self.active:
            raise api.error(api.ERR_OPERATION_INVALID, 'Requested operation '
                            'is not valid: domain is not running')
        for job in (self.incoming, self.outgoing):
            if job is not None:
                job.qemu_died(self)
        self.block_jobs.clear()
        self.state_and_reason = (api.SHUTOFF, reason)
        if not self.persistent:
            self.hypervisor.forget(self)
        return 0

    def reset(self, flags=0):
        return 0

    def suspend(self):
        self.state_and_reason = (api.PAUSED, api.PAUSED_USER)
        return 0

    def resume(self):
        self.state_and_reason = (api.RUNNING, api.RUNNING_UNPAUSED)
        return 0

    def managedSave(self, flags=0):
        self._stop(api.SHUTOFF_UNKNOWN)
        self.managed_save = True
        return 0

    def hasManagedSaveImage(self, flags=0):
        return int(self.managed_save)

    def managedSaveRemove(self, flags=0):
        self.managed_save = False
        return 0

    def undefine(self):
        return self.undefineFlags(0)

    def undefineFlags(self, flags=0):
        if self.outgoing is not None:
            raise self._locked()
        self.persistent = False
        if not self.active:
            self.hypervisor.forget(self)
        return 0

    def attachDevice(self, xml):
        return self.attachDeviceFlags(xml, 0)

    def attachDeviceFlags(self, xml, flags=0):
        for tree in self._affected(flags):
            tree.find('devices').append(etree.fromstring(_text(xml)))
            _completed(tree)
        return 0

    def detachDevice(self, xml):
        return self.detachDeviceFlags(xml, 0)

    def detachDeviceFlags(self, xml, flags=0):
        wanted = etree.fromstring(_text(xml))
        for tree in self._affected(flags):
            devices = tree.find('devices')
            found = [device for device in devices.findall(wanted.tag)
                     if _identity(device) == _identity(wanted)]
            if not found:
                raise api.error(api.ERR_DEVICE_MISSING, 'device not found: '
                                'no device matching %s' % wanted.tag)
            devices.remove(found[0])
        return 0

    def snapshotCreateXML(self, xml, flags=0):
        """Let the guest write to new images from now on."""
        for disk in etree.fromstring(_text(xml)).findall('./disks/disk'):
            if disk.get('snapshot') == 'external':
                self._on_top(disk.get('name'), disk.find('source').get('file'))

    def _on_top(self, name, path):
        dev = self._disk(name).find('target').get('dev')
        self.consist_of(dev, [path] + self.chain(dev))

    def chain(self, dev):
        """The names of the images of a disk, the active one first."""
        return block_job.chain_of(self._disk(dev))

    def consist_of(self, dev, files):
        """Let a disk consist of other images.

        A definition names the active one only: libvirt finds the others when
        it starts the guest.
        """
        for tree, names in ((self._live, files), (self._config, files[:1])):
            for disk in tree.findall('./devices/disk'):
                if disk.find('target').get('dev') == dev:
                    block_job.set_chain(disk, names)

    def defined_source(self, dev):
        """The image of a disk with which the guest would be started next."""
        return next(block_job.chain_of(disk)[0] for disk in
                    self._config.findall('./devices/disk')
                    if disk.find('target').get('dev') == dev)

    def fsFreeze(self, mountpoints=None, flags=0):
        self.frozen += 1
        return 1

    def fsThaw(self, mountpoints=None, flags=0):
        self.frozen -= 1
        return 1

    # ---- jobs

    def abortJob(self):
        if self.incoming is not None:
            raise self._locked()
        if self.outgoing is None:
            raise api.error(api.ERR_OPERATION_INVALID, 'Requested operation '
                            'is not valid: no job is active on the domain')
        self.hypervisor.abort(self.outgoing)
        return 0

    def migrateStartPostCopy(self, flags=0):
        self.outgoing.switch_to_postcopy()
        return 0

    def jobStats(self, flags=0):
        if self.incoming is not None:
            raise api.error(
                api.ERR_OPERATION_UNSUPPORTED, 'Operation not supported: '
                'migration statistics are available only on the source host')
        if self.outgoing is None:
            return {'type': api.JOB_NONE}
        return self.outgoing.stats()

    def jobInfo(self):
        # the same, in virDomainJobInfo's order, of which the type is first
        return [self.jobStats(0)['type']] + [0] * 11

    # ---- block jobs

    def _disk(self, name):
        """A disk of what runs, by its target name or its active image."""
        for disk in self._live.findall('./devices/disk'):
            if name in (disk.find('target').get('dev'),
                        block_job.chain_of(disk)[0]):
                return disk
        raise api.error(api.ERR_INVALID_ARG, "invalid argument: disk '%s' not "
                        'found in domain' % name)

    def _start_block_job(self, name, kind, target=None, merged=None):
        disk = self._disk(name)
        dev = disk.find('target').get('dev')
        if kind == api.BLOCK_JOB_COPY and self.persistent:
            raise api.error(api.ERR_OPERATION_INVALID, 'Requested operation '
                            'is not valid: domain is not transient')
        if dev in self.block_jobs:
            raise api.error(api.ERR_OPERATION_INVALID, 'Requested operation '
                            "is not valid: disk '%s' already in active block "
                            'job' % dev)
        self.block_jobs[dev] = block_job.BlockJob(disk, kind, target, merged)
        return 0

    def blockRebase(self, disk, base, bandwidth=0, flags=0):
        if flags & api.BLOCK_REBASE_COPY:
            return self._start_block_job(disk, api.BLOCK_JOB_COPY, base)
        chain = block_job.chain_of(self._disk(disk))
        return self._start_block_job(
            disk, api.BLOCK_JOB_PULL,
            merged=chain[:1] + (chain[chain.index(base):] if base else []))

    def blockCopy(self, disk, destxml, params=None, flags=0):
        return self._start_block_job(disk, api.BLOCK_JOB_COPY,
                                     etree.fromstring(_text(destxml)))

    def blockCommit(self, disk, base, top, bandwidth=0, flags=0):
        chain = block_job.chain_of(self._disk(disk))
        return self._start_block_job(
            disk, api.BLOCK_JOB_COMMIT,
            merged=chain[:chain.index(top)] + chain[chain.index(base):])

    def end_merge(self, dev):
        """A pull or a commit has ended by itself."""
        self.block_jobs.pop(dev).merge()

    def blockResize(self, disk, size, flags=0):
        if not self.active:
            raise api.error(api.ERR_OPERATION_INVALID, 'Requested operation '
                            'is not valid: domain is not running')
        self._disk(disk)
        return 0

    def blockJobInfo(self, disk, flags=0):
        dev = self._disk(disk).find('target').get('dev')
        if dev in self.block_jobs:
            return self.block_jobs[dev].info()
        if self.outgoing is None or not self.outgoing.copies_disks:
            return {}
        return {'type': api.BLOCK_JOB_COPY, 'bandwidth': 0,
                'cur': self.outgoing.percent, 'end': 100}

    def blockJobAbort(self, disk, flags=0):
        if self.outgoing is not None:
            raise self._locked()
        dev = self._disk(disk).find('target').get('dev')
        if dev not in self.block_jobs:
            raise api.error(api.ERR_INVALID_ARG, "invalid argument: disk '%s' "
                            'does not have an active block job' % dev)
        if flags & api.BLOCK_JOB_ABORT_PIVOT:
            self.block_jobs[dev].pivot()
            del self.block_jobs[dev]
        else:
            self.hypervisor.abort_block_job(self, dev)
        return 0

    def cancel_block_job(self, dev):
        self.block_jobs.pop(dev).cancel()

    @staticmethod
    def _locked():
        """What a call gets, after 30 s, while a migration has the domain."""
        return api.error(
            api.ERR_OPERATION_TIMEOUT,
            'Timed out during operation: cannot acquire state change lock '
            '(held by monitor=remoteDispatchDomainMigratePerform3Params)')
