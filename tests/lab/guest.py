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


"""The image of a guest that shows where it runs and what its disk holds.

The guest is a boot sector. Once a second it writes the next number, its tick,
to the serial console and to a block of its disk. It begins with the number
that the block holds. So two copies that run, a stale disk and lost writes can
be seen from outside:

* a console that grows is a guest that runs;
* the block of a disk tells how far that copy of the disk has come;
* a tick that is lower than an earlier one means that writes were lost.
"""

import os
import struct

#: Bytes of a block, and the block that holds the tick as a little-endian
#: 64 bit number.
BLOCK = 512
TICK_BLOCK = 8
#: A line of the console: 'tick ' and eight hexadecimal digits.
LINE = b'tick '
LINE_LENGTH = len(LINE) + 9

#: Size of the image. Behind the boot sector it holds noise, so that a copy of
#: the disk can be told from an empty file.
SIZE = 64 << 20

# Addresses in the guest's memory: the BIOS loads the boot sector to ORIGIN;
# the buffer is the block that is read and written; the BIOS counts its timer's
# interrupts, 18.2 a second, at BIOS_CLOCK.
_ORIGIN = 0x7c00
_BUFFER = 0x8000
_BIOS_CLOCK = 0x046c
_PARTITIONS = 446


class _Assembler(object):
    """Machine code with labels, for jumps of less than 128 bytes."""

    def __init__(self):
        self.code = bytearray()
        self._labels = {}
        self._jumps = []

    def label(self, name):
        self._labels[name] = len(self.code)

    def __call__(self, *parts):
        """Append bytes; an int is a byte."""
        for part in parts:
            self.code += bytes([part]) if isinstance(part, int) else part

    def jump(self, opcode, name):
        """Append a jump with an operand of one byte."""
        self(opcode, 0)
        self._jumps.append((len(self.code), name))

    def call(self, name):
        self(0xe8, word(0))
        self._jumps.append((len(self.code), name))

    def finish(self):
        for end, name in self._jumps:
            distance = self._labels[name] - end
            if self.code[end - 3] == 0xe8:
                self.code[end - 2:end] = struct.pack('<h', distance)
            else:
                self.code[end - 1:end] = struct.pack('<b', distance)
        return bytes(self.code)

    def address(self, name):
        return _ORIGIN + self._labels[name]


def word(value):
    return struct.pack('<H', value)


def _program(address_packet=0, text=0):
    """The boot sector's code: 16 bit real mode, with the services of a BIOS.

    :param address_packet: address of the disk address packet
    :param text: address of LINE
    """
    asm = _Assembler()
    # segments 0, stack below the code
    asm(0xfa)                               # cli
    asm(0x31, 0xc0)                         # xor ax, ax
    asm(0x8e, 0xd8, 0x8e, 0xc0)             # mov ds, ax; mov es, ax
    asm(0x8e, 0xd0, 0xbc, word(_ORIGIN))    # mov ss, ax; mov sp, ORIGIN
    asm(0xfb, 0xfc)                         # sti; cld
    # the first serial port: 9600 baud, 8 bits, no parity, 1 stop bit
    asm(0xb8, word(0x00e3))                 # mov ax, 0x00e3
    asm(0x31, 0xd2, 0xcd, 0x14)             # xor dx, dx; int 0x14
    # the tick that the disk holds
    asm(0xb4, 0x42)                         # mov ah, 0x42 (read)
    asm.call('disk')

    asm.label('tick')
    asm(0x66, 0xff, 0x06, word(_BUFFER))    # inc dword [BUFFER]
    asm(0xbe, word(text))                   # mov si, text
    asm.label('letter')
    asm(0xac, 0x84, 0xc0)                   # lodsb; test al, al
    asm.jump(0x74, 'number')                # jz number
    asm.call('send')
    asm.jump(0xeb, 'letter')                # jmp letter

    asm.label('number')
    asm(0x66, 0x8b, 0x1e, word(_BUFFER))    # mov ebx, [BUFFER]
    asm(0xb9, word(8))                      # mov cx, 8
    asm.label('digit')
    asm(0x66, 0xc1, 0xc3, 4)                # rol ebx, 4
    asm(0x88, 0xd8, 0x24, 0x0f)             # mov al, bl; and al, 15
    asm(0x3c, 0x0a)                         # cmp al, 10
    asm.jump(0x72, 'decimal')               # jb decimal
    asm(0x04, ord('a') - ord('0') - 10)     # add al, 'a' - '0' - 10
    asm.label('decimal')
    asm(0x04, ord('0'))                     # add al, '0'
    asm.call('send')
    asm.jump(0xe2, 'digit')                 # loop digit
    asm(0xb0, 0x0a)                         # mov al, '\n'
    asm.call('send')
    asm(0xb8, word(0x4300))                 # mov ax, 0x4300 (write)
    asm.call('disk')

    # 18 changes of the clock. It is compared for change only, since it
    # starts again from 0 at midnight.
    asm(0xb9, word(18))                     # mov cx, 18
    asm.label('change')
    asm(0xa0, word(_BIOS_CLOCK))            # mov al, [BIOS_CLOCK]
    asm.label('same')
    asm(0xf4)                               # hlt
    asm(0x3a, 0x06, word(_BIOS_CLOCK))      # cmp al, [BIOS_CLOCK]
    asm.jump(0x74, 'same')                  # je same
    asm.jump(0xe2, 'change')                # loop change
    asm.jump(0xeb, 'tick')                  # jmp tick

    asm.label('send')                       # al to the serial port
    asm(0xb4, 0x01, 0x31, 0xd2)             # mov ah, 1; xor dx, dx
    asm(0xcd, 0x14, 0xc3)                   # int 0x14; ret
    asm.label('disk')                       # function ah on the tick's block
    asm(0xbe, word(address_packet))         # mov si, address packet
    asm(0xb2, 0x80, 0xcd, 0x13, 0xc3)       # mov dl, 0x80; int 0x13; ret

    asm.label('text')
    asm(LINE, 0)
    asm.label('packet')
    # size, 0, blocks, offset and segment of the buffer, first block
    asm(struct.pack('<BBHHHQ', 16, 0, 1, _BUFFER, 0, TICK_BLOCK))
    return asm


def boot_sector():
    """The 512 bytes of the guest's program."""
    first = _program()
    code = _program(first.address('packet'), first.address('text')).finish()
    # One partition, since Glance takes no image for raw that has a boot
    # sector without any: bootable, of type Linux, from block 2048 on.
    partition = struct.pack('<B3sB3sII', 0x80, b'\x20\x21\x00', 0x83,
                            b'\x20\x21\x00', 2048, SIZE // BLOCK - 2048)
    if len(code) > _PARTITIONS:
        raise ValueError('the boot sector has no room for its partitions')
    sector = code.ljust(_PARTITIONS, b'\0') + partition
    return sector.ljust(BLOCK - 2, b'\0') + b'\x55\xaa'


def make_image(path):
    """Write the image of the guest, if it is not there.

    :param path: ``pathlib.Path`` of the file
    """
    sector = boot_sector()
    if path.exists() and path.stat().st_size == SIZE:
        with path.open('rb') as image:
            if image.read(BLOCK) == sector:
                return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + '.part')
    with unfinished.open('wb') as image:
        image.write(sector)
        image.write(bytes((TICK_BLOCK - 1) * BLOCK))
        image.write(bytes(BLOCK))
        while image.tell() < SIZE:
            image.write(os.urandom(min(1 << 20, SIZE - image.tell())))
    unfinished.rename(path)


def console_tick(console):
    """The last tick that a guest wrote to its console.

    :param console: ``pathlib.Path`` of console.log
    :returns: a number, or None
    """
    try:
        with console.open('rb') as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 4 * LINE_LENGTH))
            lines = log.read().split(b'\n')
    except FileNotFoundError:
        return None
    # what follows the last newline is not complete
    ticks = [line for line in lines[:-1] if line.startswith(LINE) and
             len(line) == LINE_LENGTH - 1]
    return int(ticks[-1][len(LINE):], 16) if ticks else None


def disk_tick(disk):
    """The tick that a raw disk holds.

    :param disk: ``pathlib.Path`` of the disk
    :returns: a number, 0 when the guest never wrote; or None without a disk
    """
    try:
        with disk.open('rb') as image:
            image.seek(TICK_BLOCK * BLOCK)
            data = image.read(8)
    except FileNotFoundError:
        return None
    return struct.unpack('<Q', data)[0] if len(data) == 8 else None
