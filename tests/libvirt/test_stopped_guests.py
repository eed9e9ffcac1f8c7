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

"""What libvirt says of the disks of a guest that has stopped."""

from tests.libvirt import base


class StoppedGuestsTestCase(base.TestCase):

    def test_chain_is_not_told(self):
        """Only the image that the guest wrote to is."""
        started = self.start_guest()
        disk = started.disks['vda']
        self.assertEqual(tuple(map(str, disk.chain)),
                         self.observe(started).disks[0].chain)
        started.destroy()
        self.assertEqual((str(disk.top),),
                         self.observe(started).disks[0].chain)

    def test_merge_that_ended_with_the_guest(self):
        """It looks like one that was done."""
        started = self.start_guest()
        disk = started.disks['vda']
        self.leave_job(started, 'pull')
        started.destroy()
        self.assertEqual((str(disk.top),),
                         self.observe(started).disks[0].chain)
