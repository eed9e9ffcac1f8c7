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

"""The disks in a domain's XML, and what they are made of.

Knows libvirt's XML and nothing else.
"""

import dataclasses
import os
import typing
from xml.dom import minidom
from xml.etree import ElementTree

# A disk's source, by the type of the disk: the attribute that names it.
_NAMES = {'file': 'file', 'block': 'dev', 'dir': 'dir', 'network': 'name',
          'volume': 'volume', 'vhostuser': 'path', 'nvme': 'namespace'}


@dataclasses.dataclass(frozen=True)
class Disk(object):
    """One disk of a domain.

    :ivar dev: the target name, for example vda
    :ivar serial: Nova's ID of the volume, or None
    :ivar chain: the names of its images: files, devices or network names;
        first the one that the guest writes to, then what it rests on
    :ivar mirror: the name of what a block job copies it to, or None
    """
    dev: str
    serial: typing.Optional[str]
    chain: typing.Tuple[str, ...]
    mirror: typing.Optional[str] = None

    @property
    def source(self):
        """The name of the image that the guest writes to, or None."""
        return self.chain[0] if self.chain else None

    def has(self, name):
        """Tell whether an image is part of the disk.

        :param name: of the image, with or without folders
        """
        return os.path.basename(name) in map(os.path.basename, self.chain)


def _name(element):
    """The name of the image that a disk, backing store or mirror has."""
    source = element.find('source')
    if source is None:
        # libvirt before 1.2.6 names the file in the mirror itself
        return element.get('file')
    return source.get(_NAMES.get(element.get('type'), 'file'))


def _chain(element):
    while element is not None:
        name = _name(element)
        if name:
            yield name
        element = element.find('backingStore')


def disks(xml):
    """Read the disks of a domain, media drives left out.

    :param xml: the domain's XML
    :returns: a tuple of :class:`Disk`
    """
    found = []
    for element in ElementTree.fromstring(xml).findall('./devices/disk'):
        target = element.find('target')
        if element.get('device', 'disk') not in ('disk', 'lun') or (
                target is None):
            continue
        mirror = element.find('mirror')
        found.append(Disk(
            target.get('dev', ''), element.findtext('serial'),
            tuple(_chain(element)),
            None if mirror is None else _name(mirror)))
    return tuple(found)


def without_mirrors(xml):
    """Leave out what its block jobs copy a domain's disks to.

    :param xml: the domain's XML
    :returns: XML that can be defined
    """
    # not ElementTree, which renames the prefixes of namespaces, and with them
    # the elements of Nova's metadata for readers that know only its prefix
    domain: typing.Any = minidom.parseString(xml).documentElement
    for mirror in domain.getElementsByTagName('mirror'):
        disk = mirror.parentNode
        if disk.nodeName == 'disk' and disk.parentNode.nodeName == 'devices':
            disk.removeChild(mirror)
    return domain.toxml()
