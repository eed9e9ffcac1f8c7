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

"""What is lost of the journal when it was not made durable.

A kill alone loses nothing that was written. Here it loses as much as a loss
of power would, so that a journal that does not sync is found out.
"""

import os

import fixtures

from nova_migration_guard import durable


class Durability(fixtures.Fixture):
    """Remembers what of the journals has been synced."""

    def __init__(self):
        super(Durability, self).__init__()
        # (device, inode) of what was synced since it was last written to
        self._synced = set()
        # {path: what a loss of power leaves of it, or None for nothing}
        self._lost = {}

    def _setUp(self):
        original = durable.write

        def fsync(descriptor):
            found = os.fstat(descriptor)
            self._synced.add((found.st_dev, found.st_ino))

        def write(path, text):
            folder = self._identity(os.path.dirname(path))
            self._synced.discard(folder)
            original(path, text)
            self._lost.pop(path, None)
            if folder not in self._synced:
                self._lost[path] = None
            elif self._identity(path) not in self._synced:
                self._lost[path] = ''
            self._synced.discard(self._identity(path))
        # what a test puts in the place of os.fsync is not called here
        self.useFixture(fixtures.MockPatchObject(os, 'fsync', fsync))
        self.useFixture(fixtures.MockPatchObject(durable, 'write', write))

    @staticmethod
    def _identity(path):
        found = os.stat(path)
        return found.st_dev, found.st_ino

    def lose(self, folder):
        """Lose what was not synced in one host's journal."""
        for path, text in list(self._lost.items()):
            if os.path.dirname(path) != folder or not os.path.exists(path):
                continue
            del self._lost[path]
            if text is None:
                os.unlink(path)
            else:
                with open(path, 'w') as stream:
                    stream.write(text)
