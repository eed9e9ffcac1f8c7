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

"""What an operator may decide about a held instance.

An operator can know what the guard cannot find out: that a host which does
not answer has no power, or which of two disks is the good one. The word says
which side's guest is kept. It is refused where it would break a rule all the
same. A pure function, asked by the command before the word is written down
and by the settler before it is carried out.
"""

import enum

from nova_migration_guard import facts
from nova_migration_guard import verdict

Verdict = verdict.Verdict


class Keep(enum.Enum):
    """Which side's guest is kept."""
    SOURCE = 'source'
    DESTINATION = 'destination'


def judge(known, keep, fenced, has_disk):
    """Decide whether an operator's word may be carried out.

    :param known: the :class:`nova_migration_guard.facts.Facts` of an instance
        that is held by what they say
    :param keep: a :class:`Keep`
    :param fenced: whether Nova was told that the destination is down
        (``openstack compute service set --down``), which is an operator's
        promise that no guest runs there
    :param has_disk: whether the instance's disk is on this host
    :returns: a :class:`nova_migration_guard.verdict.Ruling`: ROLL_BACK,
        FINISH, or HOLD with the reason why it is refused
    """
    reason = _refusal(known)
    if reason is None and keep is Keep.SOURCE:
        reason = _refusal_of_source(known, fenced, has_disk)
    elif reason is None:
        reason = _refusal_of_destination(known)
    if reason is not None:
        return verdict.Ruling(Verdict.HOLD, reason, refuse=True)
    return verdict.Ruling(
        Verdict.ROLL_BACK if keep is Keep.SOURCE else Verdict.FINISH,
        'an operator said to keep the guest at the %s; %s, and %s says: %s' % (
            keep.value, known.guest.value, known.destination,
            known.peer.value))


def _refusal(known):
    """Why neither side can be kept, or None."""
    if known.moved:
        return 'Nova says already that it is on %s' % known.instance_host
    if known.job is not facts.Job.NONE:
        return '%s: it has to end first' % known.job.value
    if known.guest in (facts.Guest.UNKNOWN, facts.Guest.INCOMING,
                       facts.Guest.SPLIT):
        return known.guest.value
    if not known.migrating and not known.left_last:
        return 'no migration of it is in flight'
    if known.destination is None:
        return 'nothing names the destination'
    if known.peer is facts.Peer.NOT_ASKED:
        return '%s was not asked yet' % known.destination
    if known.peer is facts.Peer.UNKNOWN and len(known.destinations) > 1:
        return 'more than one host may have the guest (%s)' % (
            known.peer_said)
    if known.peer_works:
        return '%s still works for the migration' % known.destination
    if known.journaled_destination not in (None, known.destination):
        return 'the guest may be on %s, and the journal names %s' % (
            known.destination, known.journaled_destination)
    return None


def _refusal_of_source(known, fenced, has_disk):
    guest, peer = facts.Guest, facts.Peer
    there = '%s says: %s' % (known.destination, known.peer.value)
    if known.peer is peer.RUNS:
        return ('%s; it would run twice, or be lost there. End it there '
                'first' % there)
    if known.guest is guest.HERE:
        return None
    # it is not running here, and may be started from now on
    if known.peer is peer.UNKNOWN and not fenced:
        return ('the guest does not run here and may run on %s. See that it '
                'does not, and tell Nova: openstack compute service set '
                '--down %s nova-compute' % (
                    known.destination, known.destination))
    if known.peer in (peer.THERE, peer.OFF):
        return ('%s, and it does not run here. End it there first' % there)
    if known.guest is guest.ABSENT and not has_disk:
        return 'neither the guest nor its disk is here'
    return None


def _refusal_of_destination(known):
    guest, peer = facts.Guest, facts.Peer
    there = '%s says: %s' % (known.destination, known.peer.value)
    if known.guest is guest.HERE:
        return ('the guest runs here; it would run twice, or be lost. End it '
                'here first, when that is what you want')
    if known.peer in (peer.ABSENT, peer.UNKNOWN):
        return there
    if known.guest is guest.SUSPENDED and known.peer is not peer.RUNS:
        return '%s, and it is halted here, with its memory' % there
    return None
