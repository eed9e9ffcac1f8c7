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

"""What an operator can do about an instance, in sentences.

A pure function of what is known: the commands show it, and nothing depends
on it.
"""

from nova_migration_guard import facts
from nova_migration_guard import verdict

_WAIT = 'Nothing has to be done: the guard tries again by itself.'
_DATA = ('Look before anything else, and do not reset its state: the disk of '
         'a guest that runs twice is lost.')
_RELEASE = ('If you know better than the hosts can say: '
            'nova-migration-guard held release %s --keep source|destination.')


def for_held(record, runs):
    """What helps an instance that is held.

    :param record: a :class:`nova_migration_guard.held.Record`
    :param runs: whether nova-compute runs
    :returns: a list of sentences
    """
    found = [] if runs else [
        'Start nova-compute: it is settled by nova-compute alone.']
    if record.facts is None:
        return found + ['The reason names what fails. %s' % _WAIT]
    ruling = verdict.judge(record.facts)
    return found + for_ruling(record.instance, record.facts, ruling)


def for_ruling(uuid, known, ruling):
    """What helps when a verdict is not carried out, or cannot be.

    :param uuid: the instance's UUID
    :param known: a :class:`nova_migration_guard.facts.Facts`
    :param ruling: its :class:`nova_migration_guard.verdict.Ruling`
    :returns: a list of sentences
    """
    if ruling.verdict is not verdict.Verdict.HOLD:
        return ['Nothing has to be done: nova-compute does this by itself, at '
                'the latest when it starts.']
    virsh = 'virsh domjobinfo %s; virsh domstate %s --reason' % (uuid, uuid)
    if known.job is facts.Job.UNKNOWN:
        return ['libvirt, or the QEMU of the guest, does not answer: look '
                'whether its storage and network are there (%s). %s' % (
                    virsh, _WAIT)]
    if known.postcopy_failed:
        return ['Bring the network between the hosts back, then ask libvirt '
                'to recover it: virsh migrate --postcopy --postcopy-resume '
                'with the flags and the URI of the migration. Start, destroy '
                'and delete nothing: each host has a part of the guest.']
    if known.job is facts.Job.OUTGOING_POSTCOPY:
        return ['Wait until the migration has ended. If its network broke, '
                'bring it back. Never abort it: both hosts have a part of '
                'the guest.']
    if known.job is facts.Job.INCOMING:
        return ['Wait until the guest has arrived.']
    if known.job is not facts.Job.NONE:
        return ['Look at the job (%s). It ends when its network and the '
                'other host are back. %s' % (virsh, _WAIT)]
    if known.moved:
        return ['Nova says that it is on %s. Find out where its guest runs '
                '(virsh domstate on both hosts). %s' % (
                    known.instance_host, _DATA)]
    return _without_job(uuid, known)


def _without_job(uuid, known):
    other = known.destination
    if known.peer is facts.Peer.UNKNOWN:
        return ['%s does not say whether the guest is there (%s). Bring its '
                'nova-compute back, or RabbitMQ. With [migration_guard] '
                'peer_libvirt its libvirt is asked, too. %s' % (
                    other, known.peer_said, _RELEASE % uuid)]
    if known.peer_works:
        return ['%s still works for the migration. It ends there, or counts '
                'as ended after [DEFAULT] long_rpc_timeout.' % other]
    here = known.guest is facts.Guest.HERE
    if here and known.peer is facts.Peer.RUNS:
        return ['The guest runs here and on %s. Find out which one is in '
                'use, and end the other with virsh destroy on its host; then '
                'the guard goes on. %s' % (other, _DATA)]
    if known.peer is facts.Peer.ABSENT:
        return ['Neither host has the guest. Look for its disk on both. %s '
                '%s' % (_DATA, _RELEASE % uuid)]
    if known.peer is facts.Peer.THERE:
        return ['The domain is on %s and does not run: it goes by itself '
                'when its libvirtd notices, or with virsh destroy there, if '
                'the guest runs here.' % other]
    return [_WAIT]
