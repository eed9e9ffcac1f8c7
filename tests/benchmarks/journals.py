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

"""What a live migration waits for the journal, beside an fsync.

Bytes and fsyncs of each step are counted; an fsync of 4096 bytes in the same
folder is timed in the same run. ``NMG_FOLDER`` names the folder, which has to
be on the disk that is to be measured; ``NMG_ROUNDS`` says otherwise how many
migrations there are.
"""

import os
import pathlib
import statistics
import tempfile
import time
from unittest import mock

from oslotest import base

from nova_migration_guard import durable
from nova_migration_guard import journal
from tests.benchmarks import measuring

ROUNDS = int(os.environ.get('NMG_ROUNDS', '0')) or 200
UUID = '6d8a2b0e-4c1c-4a53-9f5b-0c1d3a1f7e11'

# Bytes of the parts of an entry, as an instance with one disk, one volume and
# one port has them.
MIGRATE_DATA, SOURCE_BDMS, DOMAIN_XML = 6000, 5000, 7000

#: What each step of a migration does.
STEPS = ('begin', journal.PREPARED, journal.STARTED, journal.POST_MIGRATION,
         'end')
BEFORE_THE_JOB = STEPS[:3]


def entry():
    return journal.Entry(
        operation=journal.LIVE_MIGRATION, phase=journal.PREPARING,
        instance=UUID, migration=UUID, source='host-a', destination='host-b',
        vm_state='active', request_id='req-' + UUID, begun=1.0,
        block_migration=True, migrate_data={'data': 'x' * MIGRATE_DATA},
        source_bdms={'data': 'x' * SOURCE_BDMS})


def take(kept, step):
    """Take one step of a migration.

    :param kept: a :class:`nova_migration_guard.journal.Journal`
    :param step: one of :data:`STEPS`
    """
    if step == 'begin':
        kept.begin(entry())
    elif step == 'end':
        kept.end(UUID)
    else:
        changes = {}
        if step == journal.STARTED:
            changes['domain_xml'] = 'x' * DOMAIN_XML
        kept.advance(UUID, step, **changes)


class Counted(object):
    """Counts the fsyncs and the bytes that are written meanwhile."""

    def __enter__(self):
        self.fsyncs = self.bytes = 0
        fsync, write = os.fsync, durable.write

        def counting_fsync(descriptor):
            self.fsyncs += 1
            fsync(descriptor)

        def counting_write(path, text):
            self.bytes += len(text.encode())
            write(path, text)
        self._patches = [
            mock.patch.object(os, 'fsync', counting_fsync),
            mock.patch.object(durable, 'write', counting_write)]
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *args):
        for patch in self._patches:
            patch.stop()


class Journals(base.BaseTestCase):

    def _fsync(self, folder):
        descriptor = os.open(
            os.path.join(folder, 'probe'), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, b'x' * 4096)
            begun = time.perf_counter()
            os.fsync(descriptor)
            return time.perf_counter() - begun
        finally:
            os.close(descriptor)

    def test_migrations(self):
        with tempfile.TemporaryDirectory(
                dir=os.environ.get('NMG_FOLDER')) as folder:
            kept = journal.Journal(folder, 'host-a')
            times = {step: [] for step in STEPS}
            fsyncs = []
            for _ in range(ROUNDS):
                for step in STEPS:
                    begun = time.perf_counter()
                    take(kept, step)
                    times[step].append(time.perf_counter() - begun)
                fsyncs.append(self._fsync(folder))
            for step in STEPS:
                with Counted() as counted:
                    take(kept, step)
                self._write(step, times[step], fsyncs, counted)
            before = [sum(taken) for taken in zip(
                *(times[step] for step in BEFORE_THE_JOB))]
            self._write('all before the job', before, fsyncs)
            self.assertEqual(
                [], [path.name for path in pathlib.Path(folder).rglob(
                    '*' + journal.ENDING)])

    @staticmethod
    def _write(step, times, fsyncs, counted=None):
        ordered = sorted(times)
        measuring.write(
            'journal', step=step, median=statistics.median(times),
            lower=ordered[len(ordered) // 4],
            upper=ordered[-1 - len(ordered) // 4],
            fsync=statistics.median(fsyncs), rounds=len(times),
            fsyncs=counted.fsyncs if counted else None,
            bytes=counted.bytes if counted else None)
