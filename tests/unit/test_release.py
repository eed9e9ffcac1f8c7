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

"""What an operator may decide: both sides of each rule."""

import ddt
from oslotest import base

from nova_migration_guard import facts
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import release
from nova_migration_guard import verdict
from tests.unit.cmd import base as cmd_base

Peer = facts.Peer
State = libvirt_jobs.State
SOURCE, DESTINATION = release.Keep.SOURCE, release.Keep.DESTINATION
ROLL_BACK, FINISH, HOLD = (
    verdict.Verdict.ROLL_BACK, verdict.Verdict.FINISH, verdict.Verdict.HOLD)

GUESTS = {
    'here': {'state': State.RUNNING, 'reason': 1},
    'suspended': {'state': State.PAUSED,
                  'reason': libvirt_jobs.PausedReason.MIGRATION},
    'off': {'state': State.SHUTOFF,
            'reason': libvirt_jobs.ShutoffReason.DESTROYED},
    'split': {'state': State.PAUSED,
              'reason': libvirt_jobs.PausedReason.POSTCOPY},
}


def known(guest, peer, job=None, **changes):
    if guest == 'absent':
        seen = libvirt_jobs.ABSENT
    elif guest == 'unknown':
        seen = libvirt_jobs.Observation(trouble='away')
    else:
        seen = libvirt_jobs.Observation(
            present=True, persistent=True, block_jobs=(), disks=(),
            job=job or libvirt_jobs.DomainJob(), **GUESTS[guest])
    return cmd_base.known(observation=seen, peer=peer, **changes)


@ddt.ddt
class ReleaseTestCase(base.BaseTestCase):

    def judge(self, keep, known, fenced=False, has_disk=True):
        return release.judge(known, keep, fenced, has_disk)

    @ddt.data(
        # guest here, the destination says, fenced, disk here, verdict
        ('here', Peer.ABSENT, False, True, ROLL_BACK),
        ('here', Peer.THERE, False, True, ROLL_BACK),
        ('here', Peer.UNKNOWN, False, True, ROLL_BACK),
        ('here', Peer.RUNS, True, True, HOLD),
        ('off', Peer.RUNS, True, True, HOLD),
        ('off', Peer.UNKNOWN, False, True, HOLD),
        ('off', Peer.UNKNOWN, True, True, ROLL_BACK),
        ('suspended', Peer.UNKNOWN, False, True, HOLD),
        ('suspended', Peer.UNKNOWN, True, True, ROLL_BACK),
        ('suspended', Peer.THERE, True, True, HOLD),
        ('off', Peer.OFF, True, True, HOLD),
        ('absent', Peer.ABSENT, False, True, ROLL_BACK),
        ('absent', Peer.ABSENT, False, False, HOLD),
        ('absent', Peer.UNKNOWN, True, False, HOLD),
        ('absent', Peer.NOT_ASKED, True, True, HOLD),
        ('split', Peer.ABSENT, True, True, HOLD),
        ('unknown', Peer.ABSENT, True, True, HOLD))
    @ddt.unpack
    def test_keep_source(self, guest, peer, fenced, has_disk, expected):
        ruling = self.judge(SOURCE, known(guest, peer), fenced, has_disk)
        self.assertEqual(expected, ruling.verdict, ruling.reason)

    @ddt.data(
        ('here', Peer.RUNS, HOLD),
        ('here', Peer.THERE, HOLD),
        ('absent', Peer.RUNS, FINISH),
        ('absent', Peer.THERE, FINISH),
        ('absent', Peer.OFF, FINISH),
        ('absent', Peer.ABSENT, HOLD),
        ('absent', Peer.UNKNOWN, HOLD),
        ('off', Peer.THERE, FINISH),
        ('suspended', Peer.RUNS, FINISH),
        ('suspended', Peer.THERE, HOLD),
        ('split', Peer.RUNS, HOLD))
    @ddt.unpack
    def test_keep_destination(self, guest, peer, expected):
        ruling = self.judge(DESTINATION, known(guest, peer), fenced=True)
        self.assertEqual(expected, ruling.verdict, ruling.reason)

    @ddt.data(
        ('a job runs', {'job': libvirt_jobs.DomainJob(
            libvirt_jobs.JobType.UNBOUNDED,
            libvirt_jobs.Operation.MIGRATION_OUT)}),
        ('it has moved', {'instance_host': 'host-b'}),
        ('no destination', {'asked': None, 'records': ()}),
        ('the destination works for it', {'peer_works': True}),
        ('the journal names another', {'journaled_destination': 'host-c'}),
        ('nothing is in flight', {'task_state': None, 'records': ()}),
        ('two destinations', {'peer': Peer.UNKNOWN, 'records': tuple(
            facts.Record(number, 'running', cmd_base.HOST, name, 1.0)
            for number, name in ((7, 'host-b'), (8, 'host-c')))}))
    @ddt.unpack
    def test_neither(self, name, changes):
        changes = dict({'peer': Peer.ABSENT}, **changes)
        for keep in release.Keep:
            for guest in ('here', 'absent'):
                if 'job' in changes and guest == 'absent':
                    continue
                ruling = self.judge(keep, known(guest, **changes), True)
                self.assertEqual(HOLD, ruling.verdict, (name, ruling.reason))
