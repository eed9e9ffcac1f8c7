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

"""A compute host as the commands see it: files, and a libvirt."""

import io
import json
import logging
import os
import pathlib
import sys
import time
import types

import fixtures
from oslotest import base

from nova_migration_guard.cmd import app
from nova_migration_guard import facts
from nova_migration_guard import held
from nova_migration_guard import journal
from nova_migration_guard import libvirt_jobs
from tests.unit import test_libvirt_jobs

UUID = '6d8a2b0e-4c1c-4a53-9f5b-0c1d3a1f7e11'
OTHER = '0b6f5a3c-1d2e-4f60-8a9b-7c6d5e4f3a21'
HOST = 'host-a'
NOBODY = 65534

CONFIG = """
[DEFAULT]
host = host-a
state_path = %s
[migration_guard]
enabled = true
"""


class Domain(test_libvirt_jobs.Domain):

    def __init__(self, uuid, **answers):
        super(Domain, self).__init__(**answers)
        self.answers['UUIDString'] = uuid


class Libvirt(object):
    """In the place of libvirt-python: what the commands use of it."""

    def __init__(self):
        self.domains = {}
        self.error = None
        self.module = types.ModuleType('libvirt')
        self.module.libvirtError = test_libvirt_jobs.Error
        self.module.openReadOnly = self.open
        self.module.registerErrorHandler = lambda handler, context: None

    def open(self, uri):
        if self.error is not None:
            raise self.error
        return self

    def close(self):
        pass

    def getLibVersion(self):
        return 9000000

    def listAllDomains(self, flags):
        return list(self.domains.values())

    def lookupByUUIDString(self, uuid):
        if uuid not in self.domains:
            raise test_libvirt_jobs.Error(libvirt_jobs.NO_DOMAIN)
        return self.domains[uuid]


def known(**changes):
    """Facts of a guest whose destination does not answer."""
    return facts.Facts(**dict({
        'host': HOST, 'instance_host': HOST, 'vm_state': 'active',
        'task_state': 'migrating',
        'records': (facts.Record(7, 'running', HOST, 'host-b', 1.0),),
        'observation': libvirt_jobs.Observation(
            present=True, state=libvirt_jobs.State.RUNNING, reason=1,
            persistent=True, job=libvirt_jobs.DomainJob(), block_jobs=(),
            disks=()),
        'observed_at': 1.0, 'peer': facts.Peer.UNKNOWN, 'asked': 'host-b',
        'peer_said': 'nova-compute on host-b: no answer within 10 s',
        'requested': frozenset([3])}, **changes))


def entry(**changes):
    """A live migration's entry in the journal."""
    return journal.Entry(**dict({
        'operation': journal.LIVE_MIGRATION, 'phase': journal.STARTED,
        'instance': UUID, 'migration': OTHER, 'source': HOST,
        'destination': 'host-b', 'vm_state': 'active', 'request_id': 'req-1',
        'begun': 1.0, 'block_migration': True,
        'migrate_data': {'secret': 'open-sesame'}, 'source_bdms': {}},
        **changes))


def swap(**changes):
    """A volume swap's entry in the journal."""
    return journal.BlockOperation(**dict({
        'operation': journal.VOLUME_SWAP, 'phase': journal.COPYING,
        'instance': UUID, 'host': HOST, 'subject': 'volume-1',
        'request_id': 'req-2', 'begun': 2.0, 'disk': 'vda',
        'target': '/dev/new', 'details': {'secret': 'open-sesame'}},
        **changes))


class CommandTestCase(base.BaseTestCase):

    def setUp(self):
        super(CommandTestCase, self).setUp()
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.config = self.top / 'nova.conf'
        self.config.write_text(CONFIG % self.top)
        self.parent = self.top / 'migration-guard'
        self.folder = self.parent / HOST
        self.journal = journal.Journal(str(self.parent), HOST)
        self.records = held.Records(str(self.parent), HOST)
        self.libvirt = Libvirt()
        self.useFixture(fixtures.MonkeyPatch('sys.warnoptions', ['error']))
        original = sys.modules.get('libvirt')
        sys.modules['libvirt'] = self.libvirt.module
        self.addCleanup(self._put_back, original)
        root = logging.getLogger()
        self.addCleanup(setattr, root, 'handlers', root.handlers[:])
        self.addCleanup(root.setLevel, root.level)

    @staticmethod
    def _put_back(original):
        if original is None:
            del sys.modules['libvirt']
        else:
            sys.modules['libvirt'] = original

    def run_command(self, *arguments):
        """Run a command, and keep its status, stdout and stderr."""
        stdout, stderr = io.StringIO(), io.StringIO()
        root = logging.getLogger()
        handlers = root.handlers[:]
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', stderr))
        try:
            status = app.main(
                ['--config-file', str(self.config)] + list(arguments),
                stdout=stdout, stderr=stderr)
        except SystemExit as e:
            status = e.code
        finally:
            root.handlers = handlers
        self.stderr = stderr.getvalue()
        self.stdout = stdout.getvalue()
        return status

    def show(self, *arguments):
        """Run a command that works.

        :returns: what it says, as JSON
        """
        status = self.run_command(*arguments + ('-f', 'json'))
        self.assertEqual(0, status, self.stderr)
        return json.loads(self.stdout)

    def must_fail(self, status, said, *arguments):
        self.assertEqual(status, self.run_command(*arguments), self.stderr)
        self.assertIn(said, self.stderr)
        self.assertEqual('', self.stdout)

    def hold(self, uuid=UUID, reason='host-b does not answer', **changes):
        """Let nova-compute hold an instance."""
        self.records.write(
            uuid, held.Held(reason=reason, since=1000.0, attempts=3,
                            next_attempt=time.monotonic() + 60),
            known(**changes))

    def as_nobody(self):
        """Have no rights on the files of the guard."""
        if os.geteuid() == 0:
            for folder in (self.top, self.top.parent):
                folder.chmod(0o755)
            os.seteuid(NOBODY)
            self.addCleanup(os.seteuid, 0)
        else:
            os.chmod(str(self.parent), 0)
            self.addCleanup(os.chmod, str(self.parent), 0o700)
