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

import ddt
from oslotest import base

from nova_migration_guard import block_verdict
from nova_migration_guard import domain_xml
from nova_migration_guard import facts
from nova_migration_guard import journal
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import verdict

END = verdict.Verdict.END_BLOCK_JOBS
HOLD = verdict.Verdict.HOLD
LEAVE = verdict.Verdict.LEAVE

DONE = block_verdict.Outcome.DONE
NOT_DONE = block_verdict.Outcome.NOT_DONE
UNKNOWN = block_verdict.Outcome.UNKNOWN

FOLDER = '/var/lib/nova/instances/snapshots'

Type = libvirt_jobs.BlockJobType
COPY = libvirt_jobs.BlockJob('vda', Type.COPY)
SNAPSHOT = libvirt_jobs.BlockJob('vda', Type.COPY, FOLDER + '/made/x.delta')


def seen(*jobs, **kwargs):
    return libvirt_jobs.Observation(**dict({
        'present': True, 'state': libvirt_jobs.State.RUNNING,
        'persistent': True, 'job': libvirt_jobs.DomainJob(),
        'block_jobs': jobs}, **kwargs))


def entry(operation=journal.VOLUME_SWAP, phase=journal.COPYING, disk='vda',
          target='new', **details):
    return journal.BlockOperation(
        operation=operation, phase=phase, instance='i', host='host-a',
        subject='s', request_id='r', begun=1.0, disk=disk, target=target,
        details=details)


def known(observation, *entries, **kwargs):
    return block_verdict.Known(**dict({
        'task_state': None, 'observation': observation, 'entries': entries,
        'snapshot_folder': FOLDER, 'starting': True}, **kwargs))


@ddt.ddt
class JudgeTestCase(base.BaseTestCase):

    def verdict_on(self, *args, **kwargs):
        return block_verdict.judge(known(*args, **kwargs)).verdict

    def test_nothing(self):
        self.assertIs(LEAVE, self.verdict_on(seen()))
        self.assertIs(LEAVE, self.verdict_on(libvirt_jobs.ABSENT))

    @ddt.data(
        (journal.LIVE_SNAPSHOT, Type.COPY),
        (journal.VOLUME_SWAP, Type.COPY),
        (journal.VOLUME_SNAPSHOT_DELETE, Type.PULL),
        (journal.VOLUME_SNAPSHOT_DELETE, Type.COMMIT),
        (journal.VOLUME_SNAPSHOT_DELETE, Type.ACTIVE_COMMIT))
    @ddt.unpack
    def test_job_of_the_journal(self, operation, kind):
        found = known(seen(libvirt_jobs.BlockJob('vda', kind)),
                      entry(operation))
        self.assertEqual(1, len(found.novas_jobs))
        ruling = block_verdict.judge(found)
        self.assertIs(END, ruling.verdict)
        self.assertTrue(ruling.refuse)

    @ddt.data(
        (journal.VOLUME_SWAP, 'vda', Type.BACKUP),
        (journal.VOLUME_SWAP, 'vdb', Type.COPY),
        (journal.VOLUME_SNAPSHOT_DELETE, 'vda', Type.COPY),
        (journal.VOLUME_SNAPSHOT_CREATE, 'vda', Type.COPY))
    @ddt.unpack
    def test_job_beside_the_journal(self, operation, disk, kind):
        found = known(seen(libvirt_jobs.BlockJob(disk, kind)),
                      entry(operation))
        self.assertEqual((), found.novas_jobs)
        self.assertEqual(1, len(found.foreign_jobs))

    def test_job_without_an_entry(self):
        for task_state in facts.SNAPSHOT_STATES:
            self.assertIs(END, self.verdict_on(seen(COPY),
                                               task_state=task_state))
        self.assertIs(END, self.verdict_on(seen(SNAPSHOT)))
        for task_state in (None, 'image_snapshot_pending', 'rebooting'):
            self.assertIs(LEAVE, self.verdict_on(seen(COPY),
                                                 task_state=task_state))

    def test_task_state_and_an_entry(self):
        """The entry names Nova's disk; the copy of another is not Nova's."""
        found = known(
            seen(SNAPSHOT, libvirt_jobs.BlockJob('vdb', Type.COPY, '/copy')),
            entry(journal.LIVE_SNAPSHOT), task_state='image_uploading')
        self.assertEqual(['vda'], [job.disk for job in found.novas_jobs])
        self.assertEqual(['vdb'], [job.disk for job in found.foreign_jobs])

    def test_task_state_of_this_process(self):
        self.assertIs(LEAVE, self.verdict_on(
            seen(COPY), task_state=facts.IMAGE_SNAPSHOT, starting=False))

    def test_target_that_only_begins_alike(self):
        beside = libvirt_jobs.BlockJob('vda', Type.COPY, FOLDER + '2/x.delta')
        self.assertIs(LEAVE, self.verdict_on(seen(beside)))

    def test_foreign_jobs_are_aborted_on_demand(self):
        found = known(seen(libvirt_jobs.BlockJob('vda', Type.BACKUP)))
        self.assertIs(LEAVE, block_verdict.judge(found).verdict)
        self.assertIs(END, block_verdict.judge(found, True).verdict)

    def test_libvirt_does_not_say(self):
        ruling = block_verdict.judge(known(seen(
            block_jobs=None, trouble='no answer')))
        self.assertIs(HOLD, ruling.verdict)
        self.assertTrue(ruling.refuse)
        self.assertTrue(ruling.deletable)
        self.assertIn('no answer', ruling.reason)

    def test_transient_domain(self):
        transient = seen(persistent=False)
        self.assertIs(END, self.verdict_on(transient))
        # another tool may want it so
        self.assertIs(LEAVE, self.verdict_on(seen(COPY, persistent=False)))
        # one that arrives here
        arriving = libvirt_jobs.DomainJob(
            libvirt_jobs.JobType.UNBOUNDED,
            libvirt_jobs.Operation.MIGRATION_IN)
        self.assertIs(LEAVE, self.verdict_on(
            seen(persistent=False, job=arriving)))

    def test_entry_without_a_job(self):
        ruling = block_verdict.judge(known(seen(), entry()))
        self.assertIs(END, ruling.verdict)
        self.assertTrue(ruling.refuse)

    def test_vanished(self):
        self.assertFalse(known(libvirt_jobs.ABSENT, entry()).vanished)
        defined = journal.BlockOperation(
            operation=journal.LIVE_SNAPSHOT, phase=journal.COPYING,
            instance='i', host='host-a', subject='s', request_id='r',
            begun=1.0, domain_xml='<domain/>')
        self.assertTrue(known(libvirt_jobs.ABSENT, defined).vanished)


@ddt.ddt
class OutcomeTestCase(base.BaseTestCase):

    def outcome(self, operation, chain, phase=journal.COPYING, runs=True,
                **details):
        disk = domain_xml.Disk('vda', None, tuple(chain))
        return block_verdict.outcome(
            entry(operation, phase, **details), (disk,), runs)

    @ddt.data((['new'], DONE), (['old'], NOT_DONE), (['other'], UNKNOWN),
              ([], UNKNOWN))
    @ddt.unpack
    def test_swap(self, chain, expected):
        self.assertIs(expected, self.outcome(
            journal.VOLUME_SWAP, chain, source='old'))

    def test_swap_whose_volumes_look_alike(self):
        self.assertIs(UNKNOWN, self.outcome(
            journal.VOLUME_SWAP, ['new'], source='new'))

    @ddt.data(journal.BEGUN, journal.CONNECTING)
    def test_swap_before_libvirt(self, phase):
        self.assertIs(NOT_DONE, self.outcome(
            journal.VOLUME_SWAP, ['old'], phase))

    def test_disk_is_gone(self):
        self.assertIs(UNKNOWN, block_verdict.outcome(
            entry(disk='vdz', source='old'), (), True))

    def test_live_snapshot(self):
        self.assertIs(NOT_DONE, self.outcome(
            journal.LIVE_SNAPSHOT, ['/disk'], journal.FREEZING))

    @ddt.data((['/v/new', '/v/old'], DONE), (['/v/old'], NOT_DONE))
    @ddt.unpack
    def test_snapshot_create(self, chain, expected):
        self.assertIs(expected, self.outcome(
            journal.VOLUME_SNAPSHOT_CREATE, chain))

    @ddt.data(
        # a commit of b into a
        (['c', 'b', 'a'], 'b', 'a', NOT_DONE), (['c', 'a'], 'b', 'a', DONE),
        # a pull of what is above a into c, and of everything
        (['c', 'b', 'a'], 'a', None, NOT_DONE), (['c', 'a'], 'a', None, DONE),
        (['/v/c', '/v/a'], 'a', None, DONE),
        (['c', 'b'], None, None, NOT_DONE), (['c'], None, None, DONE))
    @ddt.unpack
    def test_snapshot_delete(self, chain, merged, merge_target, expected):
        self.assertIs(expected, self.outcome(
            journal.VOLUME_SNAPSHOT_DELETE, chain, merged=merged,
            merge_target=merge_target))

    @ddt.data(('b', 'a'), ('a', None), (None, None))
    @ddt.unpack
    def test_snapshot_delete_of_a_guest_that_is_off(self, merged,
                                                    merge_target):
        """Its chain is not told, and looks as if all were merged."""
        self.assertIs(NOT_DONE, self.outcome(
            journal.VOLUME_SNAPSHOT_DELETE, ['c'], runs=False, merged=merged,
            merge_target=merge_target))

    def test_snapshot_create_of_a_guest_that_is_off(self):
        self.assertIs(DONE, self.outcome(
            journal.VOLUME_SNAPSHOT_CREATE, ['/v/new'], runs=False))
