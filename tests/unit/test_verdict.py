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

"""Every row of the decision table."""

import ddt
from oslotest import base

from nova_migration_guard import facts
from nova_migration_guard import journal
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import verdict

HOST = 'host-a'
NOW = 1000000.0

ABORT = verdict.Verdict.ABORT
ADOPT = verdict.Verdict.ADOPT
HOLD = verdict.Verdict.HOLD
LEAVE = verdict.Verdict.LEAVE
ASK = verdict.Verdict.ASK
UNDO = verdict.Verdict.UNDO
FINISH = verdict.Verdict.FINISH
CLOSE = verdict.Verdict.CLOSE
ROLL_BACK = verdict.Verdict.ROLL_BACK

NOT_ASKED = facts.Peer.NOT_ASKED
PEER_ABSENT = facts.Peer.ABSENT
UNKNOWN = facts.Peer.UNKNOWN

S = libvirt_jobs.State
NO_JOB = libvirt_jobs.DomainJob()


def job(operation, elapsed=100.0):
    return libvirt_jobs.DomainJob(
        libvirt_jobs.JobType.UNBOUNDED, operation, elapsed)


OUT = job(libvirt_jobs.Operation.MIGRATION_OUT)
UNNAMED = job(libvirt_jobs.Operation.UNKNOWN)
BACKUP = job(libvirt_jobs.Operation.BACKUP)
INCOMING = job(libvirt_jobs.Operation.MIGRATION_IN)


def seen(state, reason=0, job=NO_JOB, **kwargs):
    return libvirt_jobs.Observation(
        present=True, state=state, reason=reason, persistent=True, job=job,
        block_jobs=(), **kwargs)


RUNNING = seen(S.RUNNING)
STREAMING = seen(S.RUNNING, job=OUT)
HUNG = seen(S.RUNNING, job=None, trouble='no answer')
SILENT = libvirt_jobs.Observation(trouble='libvirt is away')
ABSENT = libvirt_jobs.ABSENT
POSTCOPY = seen(S.PAUSED, libvirt_jobs.PausedReason.POSTCOPY, job=OUT)
POSTCOPY_FAILED = seen(
    S.PAUSED, libvirt_jobs.PausedReason.POSTCOPY_FAILED, job=OUT)
HALTED = seen(S.PAUSED, libvirt_jobs.PausedReason.MIGRATION)
SPLIT = seen(S.PAUSED, libvirt_jobs.PausedReason.POSTCOPY_FAILED)
USER_PAUSED = seen(S.PAUSED, 1)
SHUT_DOWN = seen(S.SHUTOFF, libvirt_jobs.ShutoffReason.SHUTDOWN)
MIGRATED = seen(S.SHUTOFF, libvirt_jobs.ShutoffReason.MIGRATED)
UNEXPLAINED = seen(S.SHUTOFF, 0)


def records(*statuses, **kwargs):
    source = kwargs.get('source', HOST)
    changed = kwargs.get('changed', NOW)
    return tuple(
        facts.Record(number, status, source, 'host-b', changed)
        for number, status in enumerate(statuses))


@ddt.ddt
class JudgeTestCase(base.BaseTestCase):

    def judge(self, observation, task_state, records=(), vm_state='active',
              **kwargs):
        if kwargs.get('phase'):
            kwargs['journaled_destination'] = 'host-b'
        return verdict.judge(facts.Facts(
            host=HOST, vm_state=vm_state, task_state=task_state,
            records=records, observation=observation, observed_at=NOW,
            **kwargs))

    @ddt.data(*facts.OPEN_STATUSES)
    def test_job_of_an_open_record_is_aborted(self, status):
        for task_state in ('migrating', None, 'powering-off'):
            for vm_state in ('active', 'error', 'paused'):
                ruling = self.judge(STREAMING, task_state, records(status),
                                    vm_state)
                self.assertIs(ABORT, ruling.verdict)
                self.assertTrue(ruling.refuse)

    @ddt.data('error', 'failed', 'cancelled')
    def test_job_outlives_its_record(self, status):
        ruling = self.judge(STREAMING, None, records(status))
        self.assertIs(ABORT, ruling.verdict)

    @ddt.data(
        (),
        records('completed'),
        records('completed', source='host-b'),
        records('error', source='host-b'),
        # it had ended long before the job began
        records('error', changed=NOW - 3600))
    def test_job_that_nova_did_not_start(self, known):
        for task_state in (None, 'migrating'):
            ruling = self.judge(STREAMING, task_state, known)
            self.assertIs(HOLD, ruling.verdict)
            self.assertTrue(ruling.refuse)

    def test_record_that_ended_within_the_clocks_skew(self):
        known = records('error', changed=NOW - 100 - facts.CLOCK_SKEW)
        self.assertIs(ABORT, self.judge(STREAMING, None, known).verdict)
        known = records('error', changed=NOW - 101 - facts.CLOCK_SKEW)
        self.assertIs(HOLD, self.judge(STREAMING, None, known).verdict)

    def _judge_journaled(self, observation, **kwargs):
        """The journal's entry and the one open record are of one migration."""
        known = dict({
            'task_state': 'migrating', 'phase': journal.STARTED,
            'journaled_migration': 'm-1', 'adopts': True,
            'records': (facts.Record(1, 'running', HOST, 'host-b', NOW,
                                     'm-1'),)}, **kwargs)
        return self.judge(observation, **known)

    def test_job_that_the_journal_knows_is_adopted(self):
        paused = seen(S.PAUSED, 1, job=OUT)
        for observation in (STREAMING, paused):
            for changes in ({}, {'phase': journal.PREPARED},
                            {'task_state': None}, {'vm_state': 'error'},
                            {'reachable': False}):
                ruling = self._judge_journaled(observation, **changes)
                self.assertIs(ADOPT, ruling.verdict)
                self.assertTrue(ruling.refuse)
            self.assertIs(ABORT, self._judge_journaled(
                observation, adopts=False).verdict)

    @ddt.data(
        {'phase': None}, {'phase': journal.PREPARING},
        {'phase': journal.POST_MIGRATION},
        {'journaled_migration': 'm-2'},
        {'records': ()},
        {'records': (facts.Record(1, 'running', HOST, 'host-c', NOW, 'm-1'),)},
        {'records': (facts.Record(1, 'error', HOST, 'host-b', NOW, 'm-1'),)},
        {'records': (facts.Record(1, 'running', HOST, 'host-b', NOW, 'm-1'),
                     facts.Record(2, 'queued', HOST, 'host-c', NOW, 'm-2'))},
        {'task_state': 'deleting'})
    def test_job_that_the_journal_does_not_know_is_aborted(self, changes):
        self.assertIs(ABORT, self._judge_journaled(
            STREAMING, **changes).verdict)
        # in post-copy nothing is aborted
        self.assertIs(HOLD, self._judge_journaled(
            POSTCOPY, **changes).verdict)

    @ddt.data(libvirt_jobs.JobType.CANCELLED, libvirt_jobs.JobType.FAILED)
    def test_job_that_ends_is_not_adopted(self, ends):
        ending = libvirt_jobs.DomainJob(
            ends, libvirt_jobs.Operation.MIGRATION_OUT, 100.0)
        self.assertIs(ABORT, self._judge_journaled(
            seen(S.RUNNING, job=ending)).verdict)

    def test_job_that_nova_did_not_start_is_not_adopted(self):
        self.assertIs(HOLD, self._judge_journaled(
            STREAMING, records=(), phase=None).verdict)

    def test_postcopy_is_adopted_in_any_mode(self):
        for adopts in (False, True):
            for status in ('running', 'running (post-copy)'):
                ruling = self._judge_journaled(
                    POSTCOPY, adopts=adopts, records=(facts.Record(
                        1, status, HOST, 'host-b', NOW, 'm-1'),))
                self.assertIs(ADOPT, ruling.verdict)
                self.assertTrue(ruling.refuse)

    def test_failed_postcopy_is_held(self):
        for ruling in (
                self._judge_journaled(POSTCOPY_FAILED),
                self._judge_journaled(
                    seen(S.PAUSED, libvirt_jobs.PausedReason.POSTCOPY_FAILED),
                    peer=facts.Peer.RUNS)):
            self.assertIs(HOLD, ruling.verdict)
            self.assertTrue(ruling.refuse)
            self.assertIn('VIR_MIGRATE_POSTCOPY_RESUME', ruling.reason)

    @ddt.data(POSTCOPY, POSTCOPY_FAILED)
    def test_postcopy_is_never_aborted(self, observation):
        ruling = self.judge(observation, 'migrating',
                            records('running (post-copy)'))
        self.assertIs(HOLD, ruling.verdict)
        self.assertTrue(ruling.refuse)

    def test_job_without_a_name(self):
        observation = seen(S.RUNNING, job=UNNAMED)
        self.assertIs(ABORT, self.judge(
            observation, 'migrating', records('running')).verdict)
        self.assertIs(LEAVE, self.judge(observation, None).verdict)

    @ddt.data(RUNNING, USER_PAUSED, SHUT_DOWN, seen(S.RUNNING, job=BACKUP))
    def test_guest_is_here_and_no_migration_runs(self, observation):
        for task_state, known in (('migrating', records('running')),
                                  (None, records('running', 'running')),
                                  ('migrating', records('preparing'))):
            for peer, expected in ((NOT_ASKED, ASK), (PEER_ABSENT, ROLL_BACK),
                                   (UNKNOWN, HOLD)):
                ruling = self.judge(observation, task_state, known, peer=peer)
                self.assertIs(expected, ruling.verdict)

    @ddt.data(RUNNING, USER_PAUSED, SHUT_DOWN)
    def test_libvirt_was_never_asked(self, observation):
        for task_state, known, phase in (
                ('migrating', (), None),
                ('migrating', records('accepted'), None),
                (None, records('queued', 'accepted'), None),
                ('migrating', records('queued'), journal.PREPARING)):
            self.assertIs(UNDO, self.judge(
                observation, task_state, known, phase=phase).verdict)

    def test_record_has_ended_while_the_destination_prepared(self):
        """Nothing says any more whether it had been asked to."""
        for peer, expected in ((NOT_ASKED, ASK), (PEER_ABSENT, ROLL_BACK)):
            self.assertIs(expected, self.judge(
                RUNNING, None, records('cancelled'), phase=journal.PREPARING,
                peer=peer).verdict)

    @ddt.data(RUNNING, SHUT_DOWN, ABSENT)
    def test_destination_still_works_for_the_migration(self, observation):
        for peer in (PEER_ABSENT, facts.Peer.RUNS, facts.Peer.THERE):
            ruling = self.judge(observation, 'migrating', records('running'),
                                peer=peer, peer_works=True)
            self.assertIs(HOLD, ruling.verdict)
            self.assertTrue(ruling.refuse)

    def test_guest_is_where_the_journal_does_not_say(self):
        for peer, expected in ((facts.Peer.RUNS, HOLD), (PEER_ABSENT, HOLD)):
            ruling = self.judge(
                ABSENT, 'migrating', records('running'), peer=peer,
                phase=journal.STARTED, asked='host-c')
            self.assertIs(expected, ruling.verdict)
        self.assertIs(ROLL_BACK, self.judge(
            RUNNING, 'migrating', records('running'), peer=PEER_ABSENT,
            phase=journal.STARTED, asked='host-b').verdict)

    def test_request_is_left_to_begin(self):
        for status in facts.BEFORE_LIBVIRT:
            asked = records('cancelled', status)
            for seen_here in (RUNNING, SHUT_DOWN):
                self.assertIs(LEAVE, self.judge(
                    seen_here, 'migrating', asked,
                    requested=frozenset([1])).verdict)
            # an earlier nova-compute has left it
            self.assertIs(UNDO, self.judge(
                RUNNING, 'migrating', asked).verdict)
        for asked, phase in ((records('running'), None),
                             (records('running', 'accepted'), None),
                             (records('accepted'), journal.STARTED)):
            self.assertIs(ASK, self.judge(
                RUNNING, 'migrating', asked, phase=phase,
                requested=frozenset([0, 1])).verdict)
        self.assertIs(ABORT, self.judge(
            STREAMING, 'migrating', records('accepted'),
            requested=frozenset([0])).verdict)

    def test_hosts_that_are_asked(self):
        def known(*records, **kwargs):
            return facts.Facts(
                host=HOST, vm_state='active', task_state='migrating',
                records=records, observation=RUNNING, **kwargs).destinations

        def record(number, status, destination):
            return facts.Record(number, status, HOST, destination, NOW)
        first = record(1, 'running', 'host-b')
        self.assertEqual(['host-b'], known(first))
        self.assertEqual(['host-b', 'host-c'], known(
            first, record(2, 'preparing', 'host-c')))
        self.assertEqual(['host-c', 'host-b'], known(
            first, record(2, 'preparing', 'host-c'), phase=journal.STARTED,
            journaled_destination='host-b'))
        # no guest can be there
        self.assertEqual(['host-b'], known(
            first, record(2, 'accepted', 'host-c')))
        self.assertEqual(['host-b'], known(
            first, record(2, 'accepted', 'host-c'), phase=journal.STARTED,
            journaled_destination='host-b'))

    def test_journal_says_that_libvirt_was_asked(self):
        for phase in (journal.PREPARED, journal.STARTED,
                      journal.POST_MIGRATION):
            for known in ((), records('queued')):
                self.assertIs(ASK, self.judge(
                    RUNNING, None, known, phase=phase).verdict)

    def test_open_record_without_a_destination(self):
        record = facts.Record(1, 'running', HOST, None, NOW)
        self.assertIs(UNDO, self.judge(
            RUNNING, 'migrating', (record,)).verdict)
        self.assertIs(HOLD, self.judge(ABSENT, 'migrating', ()).verdict)

    # here, at the destination, vm_state, what is to be done
    @ddt.data(
        (RUNNING, 'RUNS', 'active', HOLD),
        (RUNNING, 'THERE', 'active', HOLD),
        (RUNNING, 'OFF', 'active', ROLL_BACK),
        (USER_PAUSED, 'RUNS', 'paused', HOLD),
        (SHUT_DOWN, 'RUNS', 'active', FINISH),
        (SHUT_DOWN, 'OFF', 'active', FINISH),
        (UNEXPLAINED, 'ABSENT', 'active', ROLL_BACK),
        (UNEXPLAINED, 'RUNS', 'active', FINISH),
        (HALTED, 'ABSENT', 'active', ROLL_BACK),
        (HALTED, 'RUNS', 'active', FINISH),
        (HALTED, 'THERE', 'active', HOLD),
        (ABSENT, 'RUNS', 'active', FINISH),
        (ABSENT, 'RUNS', 'error', FINISH),
        (ABSENT, 'OFF', 'active', FINISH),
        (ABSENT, 'THERE', 'active', HOLD),
        (ABSENT, 'THERE', 'paused', FINISH),
        (ABSENT, 'ABSENT', 'active', HOLD),
        (ABSENT, 'UNKNOWN', 'active', HOLD),
        (MIGRATED, 'RUNS', 'active', FINISH),
        (SPLIT, 'RUNS', 'active', HOLD),
        (SPLIT, 'ABSENT', 'active', HOLD))
    @ddt.unpack
    def test_both_sides(self, observation, peer, vm_state, expected):
        ruling = self.judge(observation, 'migrating', records('running'),
                            vm_state, peer=facts.Peer[peer])
        self.assertIs(expected, ruling.verdict, ruling.reason)
        if expected is HOLD:
            self.assertTrue(ruling.refuse)

    def test_instance_is_elsewhere_by_now(self):
        for phase, known in ((None, records('running')),
                             (journal.POST_MIGRATION, ())):
            for observation, expected in (
                    (ABSENT, CLOSE), (UNEXPLAINED, CLOSE), (RUNNING, HOLD),
                    (STREAMING, HOLD), (SILENT, HOLD)):
                ruling = self.judge(observation, None, known, phase=phase,
                                    instance_host='host-b')
                self.assertIs(expected, ruling.verdict)
                self.assertFalse(ruling.refuse)

    def test_abort_that_could_freeze_the_guest(self):
        for reachable, expected in (
                (False, HOLD), (True, ABORT), (None, ABORT)):
            self.assertIs(expected, self.judge(
                STREAMING, 'migrating', records('running'),
                reachable=reachable).verdict)

    @ddt.data('error', 'failed', 'cancelled', 'completed')
    def test_idle_without_a_guest_after_leaving(self, status):
        for peer, expected in ((NOT_ASKED, ASK), (PEER_ABSENT, LEAVE),
                               (UNKNOWN, HOLD), (facts.Peer.RUNS, FINISH)):
            ruling = self.judge(ABSENT, None, records(status), peer=peer)
            self.assertIs(expected, ruling.verdict)

    def test_idle_without_a_guest_for_another_reason(self):
        for known in ((), records('completed', source='host-b')):
            self.assertIs(LEAVE, self.judge(ABSENT, None, known).verdict)
        for vm_state in ('stopped', 'shelved', 'error', 'building'):
            self.assertIs(LEAVE, self.judge(
                ABSENT, None, records('error'), vm_state).verdict)
        # off, but defined: the host was restarted since
        self.assertIs(LEAVE, self.judge(
            UNEXPLAINED, None, records('error')).verdict)

    def test_hung_monitor(self):
        for task_state in ('migrating', None):
            ruling = self.judge(HUNG, task_state)
            self.assertIs(HOLD, ruling.verdict)
            self.assertTrue(ruling.refuse)
            self.assertIn('no answer', ruling.reason)

    def test_libvirt_is_away(self):
        ruling = self.judge(SILENT, None)
        self.assertIs(HOLD, ruling.verdict)
        self.assertFalse(ruling.refuse)
        for task_state, known in (('migrating', ()),
                                  (None, records('running'))):
            ruling = self.judge(SILENT, task_state, known)
            self.assertIs(HOLD, ruling.verdict)
            self.assertTrue(ruling.refuse)

    def test_guest_is_arriving(self):
        observation = seen(S.PAUSED, 2, job=INCOMING)
        self.assertIs(HOLD, self.judge(observation, None).verdict)

    @ddt.data(RUNNING, USER_PAUSED, SHUT_DOWN, UNEXPLAINED, HALTED,
              seen(S.RUNNING, job=BACKUP))
    def test_nothing_in_flight(self, observation):
        for task_state in (None, 'image_uploading', 'rebooting', 'deleting'):
            for known in ((), records('completed'), records('error')):
                ruling = self.judge(observation, task_state, known)
                self.assertIs(LEAVE, ruling.verdict)
                self.assertFalse(ruling.refuse)


class NotNovasTestCase(base.BaseTestCase):

    def test_jobs_that_are_reported(self):
        copy = libvirt_jobs.BlockJob('vda', libvirt_jobs.BlockJobType.COPY)
        with_copy = libvirt_jobs.Observation(
            present=True, state=S.RUNNING, job=NO_JOB, block_jobs=(copy,))
        self.assertEqual(['a block job of type COPY on disk vda'],
                         verdict.not_novas(with_copy, True, [copy]))
        self.assertEqual([], verdict.not_novas(with_copy, True, []))
        self.assertEqual(
            ['a job of operation BACKUP'],
            verdict.not_novas(seen(S.RUNNING, job=BACKUP), True, []))
        self.assertEqual(
            ['a job of operation MIGRATION_OUT, of a guest that is no '
             'instance of this host'],
            verdict.not_novas(STREAMING, False, []))

    def test_jobs_that_are_not(self):
        self.assertEqual([], verdict.not_novas(STREAMING, True, []))
        self.assertEqual([], verdict.not_novas(RUNNING, True, []))
        self.assertEqual([], verdict.not_novas(RUNNING, False, []))
        self.assertEqual([], verdict.not_novas(HUNG, True, []))
        incoming = seen(S.PAUSED, 2, job=INCOMING)
        self.assertEqual([], verdict.not_novas(incoming, False, []))
        # the mirrors of a migration belong to it
        mirror = libvirt_jobs.BlockJob('vda', libvirt_jobs.BlockJobType.COPY)
        self.assertEqual([], verdict.not_novas(libvirt_jobs.Observation(
            present=True, state=S.RUNNING, job=OUT, block_jobs=(mirror,)),
            True, [mirror]))
