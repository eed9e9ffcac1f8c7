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

"""All interleavings of one move, in one cloud."""

from tests.functional import cloud
from tests.functional.interleavings import exploring
from tests.functional.interleavings import judging
from tests.functional.interleavings import moves
from tests.functional.interleavings import recording
from tests.functional.interleavings import replaying
from tests.functional.interleavings import results
from tests.functional.interleavings import stepping
from tests.functional.interleavings import tracker
from tests.functional import releases


class InterleavingsTestCase(cloud.CloudTestCase):
    """Two hosts with two virtual functions to spare, and a guest that moves.

    What a guest leaves behind, or what an audit takes from it, is gone when
    it is deleted and the hosts are audited; a test sees to that after each
    move. So moves follow one another in one cloud.
    """

    #: {host: the name of its cell}
    CELLS = {moves.A: 'cell1', moves.B: 'cell1'}

    def setUp(self):
        super(InterleavingsTestCase, self).setUp()
        self.flags(cpu_dedicated_set='0-1,4-5', cpu_shared_set='2-3,6-7',
                   group='compute')
        # no agent says that a port is plugged
        self.flags(vif_plugging_timeout=0, vif_plugging_is_fatal=False)
        self.flags(shelved_offload_time=0)
        self.useFixture(releases.snapshots_are_fakes())
        self.enable_pci(alias='vf')
        releases.let_devices_migrate_live(self)
        for host in (moves.A, moves.B):
            self.start_host(host, releases.pci_devices(1, 4))
        self.steps = self.useFixture(stepping.Steps(
            self, (moves.A, moves.B)))

    # ---- what moves need

    def flavor_of(self, guest, ram=512):
        """The ID of a flavor for a guest that has what is named."""
        name = '%d %s' % (ram, ' '.join(guest))
        specs = {}
        if moves.ALIAS in guest:
            specs['pci_passthrough:alias'] = 'vf:1'
        if moves.CPU in guest:
            specs['hw:cpu_policy'] = 'dedicated'
        for flavor in self.api.get_flavors():
            if flavor['name'] == name:
                return flavor['id']
        flavor = self.api.post_flavor({'flavor': {
            'name': name, 'ram': ram, 'vcpus': 1, 'disk': 1, 'id': name,
            'OS-FLV-EXT-DATA:ephemeral': 0}})
        if specs:
            self.api.post_extra_spec(flavor['id'], {'extra_specs': specs})
        return flavor['id']

    def enable_service(self, host, enabled):
        service = self.api.get_services(host=host, binary='nova-compute')[0]
        self.api.put_service(service['id'], {
            'status': 'enabled' if enabled else 'disabled'})

    def audit(self, host):
        """Run one audit.

        :raises AssertionError: when it ended by an error
        """
        seen = self.logged().count('Error updating resources')
        self.processes[host].manager.update_available_resource(
            self.context_on(host))
        if self.logged().count('Error updating resources') != seen:
            raise AssertionError('the audit of %s ended by an error' % host)

    # ---- the three parts

    def explore(self, kind, replays=None):
        """Run the interleavings of a move with an audit of each host.

        :param kind: a subclass of :class:`~.moves.Move`
        :param replays: how many of the distinct outcomes of each host are
            run for real, those that violate something first; None for all
        :returns: [:class:`~.results.Result`], one for each host
        """
        move = kind(self)
        move.set_up()
        move.prepare()
        uuid = move.server['id']
        recorded = recording.Recording(self, self.steps, move.HOSTS)
        self.assertTrue(recorded.record(uuid, move.run),
                        'the undisturbed move has failed')
        kept = self._kept(move)
        found = {}
        for host in move.HOSTS:
            found[host] = [
                (outcome, judging.violations(
                    outcome, kept[host],
                    recorded.positions[host][outcome.reads[-1][1]].guest))
                for outcome in exploring.Explorer(
                    self.processes[host].manager, host, self.steps, uuid,
                    recorded.positions[host]).outcomes()]
        positions = {host: len(recorded.positions[host])
                     for host in move.HOSTS}
        recorded.close()
        self._must_hold_nothing_after(move)
        return [self._result(move, host, positions[host], kept[host],
                             found[host], replays) for host in move.HOSTS]

    def _kept(self, move):
        """What the guest holds on each host when the move has ended."""
        kept = {}
        for host in (moves.A, moves.B):
            if host not in self.processes:
                continue
            usage = self._usage(host, move.server['id'])
            if host in move.KEPT:
                kept[host] = judging.holding(usage)
                # what a guest has in libvirt it has in Nova
                uses = recording.of_guest(self, host, move.server['id'])[0]
                self.assertTrue(uses <= usage.devices, (uses, usage))
                self.assertEqual(
                    len([thing for thing in move.GUEST
                         if thing != moves.CPU]), len(usage.devices), usage)
                self.assertEqual(moves.CPU in move.GUEST,
                                 bool(usage.cpus), usage)
            else:
                kept[host] = judging.NOTHING
        return kept

    def _usage(self, host, uuid):
        return tracker.usage(tracker.take(self.processes[host].manager.rt),
                             host, uuid)

    def _result(self, move, host, positions, kept, found, replays):
        result = results.Result(
            move=move.name, host=host, guest=' + '.join(move.GUEST),
            steps=positions - 1, interleavings=len(found), distinct=0,
            replayed=0, violations={}, differences=[])
        distinct = {}
        for outcome, violations in found:
            for name in violations:
                result.violations[name] = result.violations.get(name, 0) + 1
            result.count(violations)
            key = (outcome.reads[-1][1], outcome.after, outcome.error)
            distinct.setdefault(key, (outcome, violations))
        result.distinct = len(distinct)
        for outcome, violations in sorted(
                distinct.values(), key=lambda pair: not pair[1])[:replays]:
            result.replayed += 1
            self._replay(move, host, kept, outcome, violations, result)
        return result

    def _replay(self, move, host, kept, outcome, violations, result):
        """Run one interleaving for real, and compare."""
        move.prepare()
        uuid = move.server['id']
        replay = replaying.Replay(self, self.steps, host, outcome.reads)
        arrived = replay.run(uuid, move.run)
        differences = []
        if replay.reads[:len(outcome.reads)] != outcome.reads:
            differences.append('reads %s, not %s' % (
                replay.reads, outcome.reads))
        if bool(replay.error) != bool(outcome.error):
            differences.append('error %s, not %s' % (
                replay.error, outcome.error))
        if len(replay.after.devices) != len(outcome.after.devices) or (
                len(replay.after.cpus) != len(outcome.after.cpus)):
            differences.append('%s, not %s' % (replay.after, outcome.after))
        left = (self._end(move, host, kept) if arrived else
                ['the move has failed'])
        if left and not violations:
            result.count([judging.LEFT_OVER])
            result.violations[judging.LEFT_OVER] = result.violations.get(
                judging.LEFT_OVER, 0) + 1
            differences.append('%s: %s' % (outcome.reads, left))
        result.differences.extend(differences)
        self._must_hold_nothing_after(move)

    def _end(self, move, audited, kept):
        """One quiet audit of each host, and what is wrong after it."""
        wrong = []
        for host in sorted(self.processes):
            try:
                self.audit(host)
            except AssertionError as e:
                wrong.append(str(e))
            usage = self._usage(host, move.server['id'])
            wanted = kept if host == audited else None
            if host not in move.KEPT:
                wanted = judging.NOTHING
            if wanted is not None and (
                    len(wanted.devices) != len(usage.devices) or
                    len(wanted.cpus) != len(usage.cpus)):
                wrong.append('%s holds %s, not %s' % (host, usage, wanted))
        return wrong

    def _must_hold_nothing_after(self, move):
        """Delete the guest; nothing is held anywhere."""
        move.clean_up()
        for host in sorted(self.processes):
            self.audit(host)
            usage = self._usage(host, move.server['id'])
            self.assertEqual((frozenset(), frozenset(), False),
                             (usage.devices, usage.cpus, usage.counted))
            self.assertEqual({('available', None)},
                             set(self.devices(host).values()))
