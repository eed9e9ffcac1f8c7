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

"""Run a command on a host of its own, without being root, and keep order.

A libvirtd in session mode is unprivileged, which libvirtd as root never is,
and libvirt migrates a guest between two hosts only when their names differ.
Both can be had in a user namespace: of the ordinary user who runs the tests
as well as of root, and without a file that belongs to someone else.

The QEMUs that libvirtd starts outlive it. They become children of this
process, so that none is left when it ends, which it does when it is told to
with SIGTERM, when its parent dies, or when no child is left. And they are
waited for at once: libvirt takes one that is not for one that still runs.

Run as a program: ``python -m tests.libvirt.host HOSTNAME COMMAND...``
"""

import ctypes
import os
import pathlib
import signal
import socket
import sys

CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# Any number but 0 will do; no user of the machine has it in the namespace.
USER = 1000


def _call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args):
        code = ctypes.get_errno()
        raise OSError(code, '%s: %s' % (name, os.strerror(code)))


def enter(hostname):
    """Put this process into a user and a UTS namespace of its own.

    :param hostname: what the namespace's host is called
    :raises OSError: when the kernel, or the container that the tests run in,
        does not allow it
    """
    uid, gid = os.getuid(), os.getgid()
    _call('unshare', CLONE_NEWUSER | CLONE_NEWUTS)
    process = pathlib.Path('/proc/self')
    process.joinpath('setgroups').write_text('deny')
    process.joinpath('uid_map').write_text('%d %d 1' % (USER, uid))
    process.joinpath('gid_map').write_text('%d %d 1' % (USER, gid))
    socket.sethostname(hostname)


def _children():
    """The process IDs of this process's children."""
    for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            # the name before the last parenthesis may hold anything
            parent = stat.read_text().rpartition(')')[2].split()[1]
        except OSError:
            continue  # it has ended
        if int(parent) == os.getpid():
            yield int(stat.parent.name)


def _kill_children(number, frame):
    # whoever loses its parent by this comes next
    for pid in _children():
        os.kill(pid, signal.SIGKILL)
    signal.setitimer(signal.ITIMER_REAL, 0.05)


def main():
    enter(sys.argv[1])
    signal.signal(signal.SIGTERM, _kill_children)
    signal.signal(signal.SIGALRM, _kill_children)
    _call('prctl', PR_SET_CHILD_SUBREAPER, 1)
    _call('prctl', PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if not os.fork():
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break


if __name__ == '__main__':
    main()
