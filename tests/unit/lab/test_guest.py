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


"""The guest's image, and how its ticks are read; needs no lab."""

import pathlib
import struct

import fixtures
import testtools

from tests.lab import guest


class GuestTestCase(testtools.TestCase):

    def setUp(self):
        super(GuestTestCase, self).setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def console(self, text):
        path = self.folder / 'console.log'
        path.write_bytes(text)
        return guest.console_tick(path)

    def test_boot_sector(self):
        sector = guest.boot_sector()
        self.assertEqual(guest.BLOCK, len(sector))
        self.assertEqual(b'\x55\xaa', sector[-2:])
        self.assertIn(guest.LINE, sector)
        # the partition ends where the image does
        first, blocks = struct.unpack('<II', sector[446 + 8:446 + 16])
        self.assertEqual(guest.SIZE, (first + blocks) * guest.BLOCK)

    def test_image(self):
        image = self.folder / 'images' / 'guest.raw'
        guest.make_image(image)
        self.assertEqual(guest.SIZE, image.stat().st_size)
        self.assertEqual(0, guest.disk_tick(image))
        made = image.stat().st_mtime_ns
        guest.make_image(image)
        self.assertEqual(made, image.stat().st_mtime_ns)

    def test_console_tick(self):
        self.assertEqual(0x1f, self.console(
            b'SeaBIOS\ntick 0000001e\ntick 0000001f\n'))

    def test_console_tick_of_a_line_that_is_being_written(self):
        self.assertEqual(0x1e, self.console(b'tick 0000001e\ntick 0000001'))

    def test_console_without_ticks(self):
        self.assertIsNone(self.console(b''))
        self.assertIsNone(self.console(b'SeaBIOS\n'))
        self.assertIsNone(guest.console_tick(self.folder / 'none'))

    def test_disk_tick(self):
        disk = self.folder / 'disk'
        disk.write_bytes(bytes(guest.TICK_BLOCK * guest.BLOCK))
        self.assertIsNone(guest.disk_tick(disk))
        with disk.open('ab') as f:
            f.write(struct.pack('<Q', 4711))
        self.assertEqual(4711, guest.disk_tick(disk))
        self.assertIsNone(guest.disk_tick(self.folder / 'none'))
