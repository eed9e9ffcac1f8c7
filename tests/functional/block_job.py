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

"""A block job of the model: QEMU copies or merges the images of a disk."""

from lxml import etree

from tests.functional import libvirt_api as api


def _source(element):
    """The name of an image, whatever it is."""
    source = element.find('source')
    if source is None:
        return None
    return source.get('file') or source.get('dev') or source.get('name')


def chain_of(disk):
    """The names of the images that a disk is made of, the active one first."""
    found = []
    while disk is not None:
        name = _source(disk)
        if name:
            found.append(name)
        disk = disk.find('backingStore')
    return found


def set_chain(disk, names):
    """Let a disk consist of other images, which are files."""
    disk.set('type', 'file')
    source = disk.find('source')
    source.attrib.clear()
    source.set('file', names[0])
    for store in disk.findall('backingStore'):
        disk.remove(store)
    for name in names[1:]:
        disk = etree.SubElement(disk, 'backingStore', type='file')
        etree.SubElement(disk, 'format', type='qcow2')
        etree.SubElement(disk, 'source', file=name)


class BlockJob(object):
    """What QEMU does with one disk of a running domain.

    :param disk: the disk's element in the XML of what runs
    :param kind: a virDomainBlockJobType
    :param target: the disk element, or the file's name, that a copy goes to
    :param merged: the chain that is left when a merge has ended
    """

    def __init__(self, disk, kind, target=None, merged=None):
        self._disk = disk
        self._target = target
        self._merged = merged
        self.kind = kind
        self.percent = 10
        if target is not None:
            self._add_mirror(target)

    def _add_mirror(self, target):
        mirror = etree.SubElement(self._disk, 'mirror')
        if isinstance(target, str):
            mirror.set('type', 'file')
            etree.SubElement(mirror, 'source', file=target)
        else:
            mirror.set('type', target.get('type'))
            mirror.append(etree.fromstring(etree.tostring(
                target.find('source'))))

    def info(self):
        return {'type': self.kind, 'bandwidth': 0, 'cur': self.percent,
                'end': 100}

    def copied(self):
        """The copy is complete, and follows what the guest writes."""
        self.percent = 100
        self._disk.find('mirror').set('ready', 'yes')

    def merge(self):
        """The merge is complete; the job ends by itself."""
        set_chain(self._disk, self._merged)

    def pivot(self):
        """Let the guest use the copy."""
        if self.percent < 100:
            raise api.error(83, 'block copy still active: disk not ready for '
                            'pivot yet')
        mirror = self._disk.find('mirror')
        self._disk.set('type', mirror.get('type'))
        self._disk.replace(self._disk.find('source'), mirror.find('source'))
        self.cancel()

    def cancel(self):
        for mirror in self._disk.findall('mirror'):
            self._disk.remove(mirror)
