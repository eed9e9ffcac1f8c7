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


"""Finds out whether guests run under KVM here.

That /dev/kvm is there proves little: on a virtual machine it may accept a
guest which then makes no progress.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from tests.lab import guest

#: Seconds in which a guest must have ticked.
PATIENCE = 6
#: The first release that can be told not to compare CPUs in the pre-checks
#: of a live migration, which fail under KVM without a CPU model.
COMPARES_NO_CPU = (26, 0)
EMULATOR = 'qemu-system-x86_64'


def virt_type(version):
    """The fastest ``[libvirt] virt_type`` that works: 'kvm' or 'qemu'.

    :param version: of Nova, a tuple
    """
    usable = os.access('/dev/kvm', os.R_OK | os.W_OK)
    if version < COMPARES_NO_CPU or not usable:
        return 'qemu'
    with tempfile.TemporaryDirectory() as folder:
        return 'kvm' if _ticks(pathlib.Path(folder)) else 'qemu'


def _ticks(folder):
    disk = folder / 'disk'
    guest.make_image(disk)
    console = folder / 'console'
    emulator = subprocess.Popen(
        [shutil.which(EMULATOR) or EMULATOR, '-accel', 'kvm', '-m', '64',
         '-nodefaults', '-display', 'none',
         '-drive', 'file=%s,format=raw,if=virtio' % disk,
         '-serial', 'file:%s' % console],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and emulator.poll() is None:
            if guest.console_tick(console):
                return True
            time.sleep(0.1)
        return False
    finally:
        emulator.kill()
        emulator.wait()
