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

"""The disks of a host, as real files in its instances folder.

What Nova deletes is gone, then, and what it leaves behind is found.
"""

import os

COMPLETE = 'complete'
EMPTY = 'empty base'


class Disks(object):
    """The instances folder of one host.

    :param instances_path: the folder that has one folder a host
    :param host: the host's name
    """

    def __init__(self, instances_path, host):
        self.path = os.path.join(instances_path, host)
        os.makedirs(self.path)

    def folder(self, uuid):
        """The instance's folder, which need not exist."""
        return os.path.join(self.path, uuid)

    def _file(self, uuid):
        return os.path.join(self.folder(uuid), 'disk')

    def get(self, uuid):
        """What is on the instance's disk.

        :returns: 'complete', 'partial N %', 'empty base', or None for none
        """
        try:
            # cold migration makes real images
            with open(self._file(uuid), errors='replace') as disk:
                return disk.read()
        except (IOError, OSError):
            return None

    def create(self, uuid, content):
        """Make the instance's disk."""
        if not os.path.isdir(self.folder(uuid)):
            os.makedirs(self.folder(uuid))
        with open(self._file(uuid), 'w') as disk:
            disk.write(content)

    def fill(self, uuid, percent):
        """A copy of the guest's disk has got so far."""
        self.create(uuid, COMPLETE if percent >= 100 else
                    'partial %d %%' % percent)
