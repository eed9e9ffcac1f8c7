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

"""What is known of the volume swaps of this nova-compute while it lives."""

import wrapt


class _WatchedDisk(wrapt.ObjectProxy):
    """Nova's disk of a guest, which says before the guest uses the copy."""

    def __init__(self, disk, before_pivot):
        super(_WatchedDisk, self).__init__(disk)
        self._self_before_pivot = before_pivot

    def abort_job(self, *args, **kwargs):
        if kwargs.get('pivot') or args[1:2] == (True,):
            self._self_before_pivot()
        return self.__wrapped__.abort_job(*args, **kwargs)


class WatchedGuest(wrapt.ObjectProxy):
    """Nova's guest, whose disks say before the guest uses a copy."""

    def __init__(self, guest, before_pivot):
        super(WatchedGuest, self).__init__(guest)
        self._self_before_pivot = before_pivot

    def get_block_device(self, disk):
        return _WatchedDisk(self.__wrapped__.get_block_device(disk),
                            self._self_before_pivot)


class Swap(object):
    """A volume swap of this process.

    :ivar subject: the ID of the volume that is swapped out
    :ivar new_connection: connection_info of the other one. Nova adds to it
        when it connects the volume.
    """

    def __init__(self, subject):
        self.subject = subject
        self.new_connection = None
