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

"""Connections to libvirt that are the guard's own.

While one call of a connection hangs, every other call on it is slow: 5.0 s
each were measured with libvirt 9.0.0 and a registered event loop. So the
guard leaves the driver's connection alone, and no two calls of its own share
one.
"""

import contextlib
import threading
import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

# Seconds that a connection was idle before it is tried out: libvirtd may have
# been restarted since.
IDLE = 0.5


class Connections(object):
    """Connections to one libvirt, each lent to one call at a time.

    :param connect: a callable that opens a ``libvirt.virConnect``
    :param error: the class of libvirt's errors
    """

    def __init__(self, connect, error):
        self._connect = connect
        self._error = error
        self._lock = threading.Lock()
        self._idle = []

    @contextlib.contextmanager
    def lend(self):
        """Lend a connection for the time of a ``with`` block.

        One whose call hangs or fails is not lent again.

        :raises Exception: what ``connect`` raises
        """
        connection = self._reuse()
        if connection is None:
            connection = self._connect()
        yield connection
        with self._lock:
            self._idle.append((connection, time.monotonic()))

    def _reuse(self):
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection, since = self._idle.pop()
            if time.monotonic() - since < IDLE:
                return connection
            try:
                # fails when libvirtd was restarted since
                connection.getLibVersion()
                return connection
            except self._error as e:
                LOG.debug('A connection to libvirt is broken: %s', e)

    def close_idle(self):
        """Close the connections that nobody uses now."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            try:
                connection.close()
            except self._error as e:
                LOG.debug('A connection to libvirt was broken: %s', e)
