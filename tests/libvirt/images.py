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

"""Disks in three layers, whose content is known byte by byte."""

import hashlib
import pathlib
import random
import subprocess

MIB = 1024 * 1024
SIZE = 24 * MIB
# Of what a layer holds beside the one below it, in bytes: a job that is
# throttled has more than a minute's work with it.
LAYER = 8 * MIB


def _run(*command):
    return subprocess.run(
        [str(word) for word in command], check=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        universal_newlines=True, timeout=120).stdout


def create(path, backing, backing_format):
    """Create an empty qcow2 image on top of another.

    :param path: of the new image
    :param backing: the image that it rests on
    :param backing_format: 'raw' or 'qcow2'
    :returns: the path
    """
    _run('qemu-img', 'create', '-q', '-f', 'qcow2', '-F', backing_format,
         '-b', backing, path)
    return path


def digest(path):
    """The checksum of what a guest reads from a qcow2 image.

    Locks are not asked for, and the layers below must not change: after the
    abort of an active commit QEMU 7.2 keeps the layer below open for writing
    until the guest ends.
    """
    raw = pathlib.Path(str(path) + '.raw')
    _run('qemu-img', 'convert', '-U', '-f', 'qcow2', '-O', 'raw', path, raw)
    try:
        return hashlib.sha256(raw.read_bytes()).hexdigest()
    finally:
        raw.unlink()


def check(path):
    """Look for errors and leaks in a qcow2 image.

    :raises subprocess.CalledProcessError: when there are any
    """
    _run('qemu-img', 'check', '-f', 'qcow2', path)


class Disk(object):
    """A disk as Nova has it, and a layer more, as after a snapshot.

    :param folder: where its images are put
    :param name: of the disk; it tells the content of one from another's
    :param size: in bytes
    :ivar base: the raw image at the bottom, full
    :ivar middle: a third of it, on top
    :ivar top: another third, on top of that; the image of the guest
    """

    def __init__(self, folder, name, size=SIZE):
        self._random = random.Random(name)  # noqa: S311
        self.base = folder / (name + '.base')
        self.middle = folder / (name + '.middle')
        self.top = folder / (name + '.top')
        self._content = bytearray().join(
            self._bytes(4096) * (MIB // 4096) for _ in range(size // MIB))
        self.base.write_bytes(self._content)
        create(self.middle, self.base, 'raw')
        self._fill(self.middle, 2 * MIB)
        create(self.top, self.middle, 'qcow2')
        self._fill(self.top, 6 * MIB)

    def _bytes(self, size):
        return self._random.getrandbits(8 * size).to_bytes(size, 'little')

    def _fill(self, image, offset):
        data = self._bytes(LAYER)
        source = image.with_suffix('.data')
        source.write_bytes(data)
        _run('qemu-io', '-f', 'qcow2', '-c', 'write -s %s %d %d' % (
            source, offset, len(data)), image)
        source.unlink()
        self.note(offset, data)

    def note(self, offset, data):
        """Note what a guest writes to its disk."""
        self._content[offset:offset + len(data)] = data

    @property
    def digest(self):
        """The checksum of what the guest must read."""
        return hashlib.sha256(self._content).hexdigest()

    @property
    def chain(self):
        """The names of its images, as domain_xml has them."""
        return tuple(map(str, (self.top, self.middle, self.base)))
