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

"""Clients of libvirt that start a job, and are killed while it runs.

Run as a program: ``python -m tests.libvirt.client URI UUID JOB ARGUMENTS``,
the last of them in JSON.
"""

import json
import os
import pathlib
import select
import subprocess
import sys
import threading

import fixtures
import libvirt

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
STARTED = b'started\n'
# Seconds until a client must have started its job.
TIMEOUT = 60
# Bytes a second.
BANDWIDTH = 128 * 1024
# Bytes of a disk whose backup takes long enough to be slowed down.
BACKUP_SIZE = 192 * 1024 * 1024

_COPY = """
<disk type='file'>
  <source file='%s'/>
  <driver type='qcow2'/>
</disk>
"""
_BACKUP = """
<domainbackup mode='push'>
  <disks>
    <disk name='%s' backup='yes' type='file'>
      <driver type='qcow2'/>
      <target file='%s'/>
    </disk>
  </disks>
</domainbackup>
"""


def copy(domain, disk, target, bandwidth=BANDWIDTH):
    """Copy a disk into a new image, as Nova swaps volumes."""
    parameters = {libvirt.VIR_DOMAIN_BLOCK_COPY_BANDWIDTH: bandwidth}
    domain.blockCopy(
        disk, _COPY % target, parameters if bandwidth else {},
        libvirt.VIR_DOMAIN_BLOCK_COPY_TRANSIENT_JOB)


def live_snapshot(domain, disk, target, bandwidth=BANDWIDTH):
    """Copy a disk's top layer into an image, as Nova's live snapshot does.

    The job needs a transient domain: Nova defines it again in the end.
    """
    domain.undefine()
    domain.blockRebase(
        disk, target, bandwidth,
        libvirt.VIR_DOMAIN_BLOCK_REBASE_COPY |
        libvirt.VIR_DOMAIN_BLOCK_REBASE_REUSE_EXT |
        libvirt.VIR_DOMAIN_BLOCK_REBASE_SHALLOW |
        libvirt.VIR_DOMAIN_BLOCK_REBASE_BANDWIDTH_BYTES)


def pull(domain, disk, bandwidth=BANDWIDTH):
    """Pull the layers below a disk's image into it."""
    domain.blockRebase(disk, None, bandwidth,
                       libvirt.VIR_DOMAIN_BLOCK_REBASE_BANDWIDTH_BYTES)


def commit(domain, disk, top, base, active=False, bandwidth=BANDWIDTH):
    """Commit a layer to the one below it."""
    flags = libvirt.VIR_DOMAIN_BLOCK_COMMIT_BANDWIDTH_BYTES
    if active:
        flags |= libvirt.VIR_DOMAIN_BLOCK_COMMIT_ACTIVE
    domain.blockCommit(disk, base, top, bandwidth, flags)


def backup(domain, disk, target):
    """Back a disk up.

    libvirt lets nobody say how fast until the job runs, and QEMU has begun to
    copy 64 MiB by then (64 workers, 1 MiB each). The disk must be larger.
    """
    domain.backupBegin(_BACKUP % (disk, target), None, 0)
    domain.blockJobSetSpeed(
        disk, BANDWIDTH, libvirt.VIR_DOMAIN_BLOCK_JOB_SPEED_BANDWIDTH_BYTES)


class Client(fixtures.Fixture):
    """A client that has started a job, and waits.

    :param uri: of libvirt
    :param uuid: of the domain
    :param job: the name of a function of this module
    :param arguments: for it, the domain left out
    """

    def __init__(self, uri, uuid, job, **arguments):
        super(Client, self).__init__()
        self._command = [sys.executable, '-m', 'tests.libvirt.client', uri,
                         uuid, job, json.dumps(arguments)]
        self._process = None

    def _setUp(self):
        self._process = subprocess.Popen(
            self._command, cwd=str(TOP), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE)
        self.addCleanup(self._process.stdout.close)
        self.addCleanup(self.kill)
        if not select.select([self._process.stdout], [], [], TIMEOUT)[0]:
            raise AssertionError('The client has not started its job.')
        said = os.read(self._process.stdout.fileno(), 4096)
        if said != STARTED:
            raise AssertionError('The client has failed, see above.')

    def kill(self):
        """End it with SIGKILL."""
        self._process.kill()
        self._process.wait(TIMEOUT)


def main():
    uri, uuid, job, arguments = sys.argv[1:]
    domain = libvirt.open(uri).lookupByUUIDString(uuid)
    globals()[job](domain, **json.loads(arguments))
    os.write(sys.stdout.fileno(), STARTED)
    # Nova would wait for the job's end here.
    threading.Event().wait()


if __name__ == '__main__':
    main()
