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

import fixtures
from oslotest import base

from nova_migration_guard import connections


class Broken(Exception):
    pass


class Connection(object):
    def __init__(self):
        self.broken = False
        self.closed = False

    def getLibVersion(self):
        if self.broken:
            raise Broken('client socket is closed')
        return 9000000

    def close(self):
        if self.broken:
            raise Broken('client socket is closed')
        self.closed = True


class ConnectionsTestCase(base.BaseTestCase):

    def setUp(self):
        super(ConnectionsTestCase, self).setUp()
        self.connections = connections.Connections(Connection, Broken)

    def lend(self):
        with self.connections.lend() as connection:
            return connection

    def test_lent_again(self):
        self.assertIs(self.lend(), self.lend())

    def test_lent_to_one_at_a_time(self):
        with self.connections.lend() as first:
            with self.connections.lend() as second:
                self.assertIsNot(first, second)

    def test_not_lent_again_after_an_error(self):
        def fail():
            with self.connections.lend() as connection:
                seen.append(connection)
                raise Broken()
        seen = []
        self.assertRaises(Broken, fail)
        self.assertIsNot(seen[0], self.lend())

    def test_libvirtd_was_restarted(self):
        self.useFixture(fixtures.MockPatchObject(connections, 'IDLE', 0))
        first = self.lend()
        first.broken = True
        second = self.lend()
        self.assertIsNot(first, second)
        self.assertIs(second, self.lend())

    def test_cannot_connect(self):
        def connect():
            raise Broken('no socket')
        self.connections = connections.Connections(connect, Broken)
        self.assertRaises(Broken, self.lend)

    def test_close_idle(self):
        with self.connections.lend() as lent:
            idle = self.lend()
            self.connections.close_idle()
            self.assertTrue(idle.closed)
            self.assertFalse(lent.closed)
        self.assertIs(lent, self.lend())

    def test_close_a_broken_one(self):
        first = self.lend()
        first.broken = True
        self.connections.close_idle()
        self.assertIsNot(first, self.lend())
