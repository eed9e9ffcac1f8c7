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

"""The steps of a move, as they happen."""

import collections
import contextlib
import threading
import time

import fixtures
from oslo_concurrency import lockutils

from nova import context as nova_context

from tests.functional.interleavings import database
from tests.functional.interleavings import picture
from tests.functional import process


class Steps(fixtures.Fixture):
    """Tells a listener of every step that a move takes.

    The listener is called in the thread that takes the step, with the host
    for whose audit it is one. Until it returns nothing else is written.

    :param cloud: the :class:`~tests.functional.cloud.CloudTestCase`
    :param hosts: the hosts whose audits matter
    """

    def __init__(self, cloud, hosts):
        super(Steps, self).__init__()
        self._hosts = hosts
        #: {host: the transaction manager of its cell}
        self.managers = {host: database.cell_manager(cloud, cloud.CELLS[host])
                         for host in hosts}
        #: the UUID of the instance that moves
        self.uuid = None
        #: called with a host, or None
        self.listener = None
        #: called with (function's name, call) for reads of ``audits``
        self.reader = None
        #: the threads that audit: their calls are no steps
        self.audits = set()
        #: {host: its Picture now}
        self.pictures = {}
        #: {host: how often the move has asked for the host's lock}
        self.asked = collections.Counter()
        #: {host: how many hold the host's lock}
        self.held = collections.Counter()
        #: when the move has done something last, of time.monotonic()
        self.last = time.monotonic()
        self._one_at_a_time = threading.RLock()

    def _setUp(self):
        self.calls = self.useFixture(database.Calls(self._read, self._write))
        original = lockutils.lock

        def lock(name, *args, **kwargs):
            found = original(name, *args, **kwargs)
            if name != 'compute_resources':
                return found
            return self._locked(process.host_of_caller(), found)
        self.useFixture(fixtures.MockPatchObject(lockutils, 'lock', lock))

    def begin(self, uuid, listener):
        """Watch an instance from now on."""
        self.uuid = uuid
        self.asked.clear()
        self._look()
        self.listener = listener

    def end(self):
        self.listener = None

    def _is_audit(self):
        return threading.get_ident() in self.audits

    def _look(self):
        """Take the pictures, and return the hosts whose have changed."""
        def look():
            found = {}
            for host in self._hosts:
                context = nova_context.get_admin_context()
                context.db_connection = self.managers[host]
                found[host] = picture.of(context, host, self.uuid)
            return found
        before = self.pictures
        self.pictures = self.calls.unseen(look)
        return [host for host in self._hosts
                if before.get(host) != self.pictures[host]]

    def _read(self, name, call):
        if self._is_audit() and self.reader is not None:
            return self.reader(name, call)
        return call()

    def _write(self, name, call):
        if self.listener is None:
            return call()
        if self._is_audit():
            try:
                return call()
            finally:
                self._look()
        with self._one_at_a_time:
            try:
                return call()
            finally:
                self.last = time.monotonic()
                for host in self._look():
                    self._step(host)

    @contextlib.contextmanager
    def _locked(self, host, lock):
        if self._is_audit():
            with lock:
                yield
            return
        self.asked[host] += 1
        with lock:
            self.held[host] += 1
            try:
                yield
            finally:
                self.held[host] -= 1
        with self._one_at_a_time:
            self.last = time.monotonic()
            if host in self._hosts:
                self._step(host)

    def _step(self, host):
        if self.listener is not None:
            self.listener(host)
