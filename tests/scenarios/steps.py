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

"""What a scenario does and sees: Nova's API by openstacksdk, and virsh."""

import contextlib
import json
import re
import subprocess
import time

from openstack import exceptions

from tests.scenarios import cloud as clouds

#: Seconds for what a cloud does on a machine that is busy.
PATIENCE = 300
#: Of the API: the first one that boots a server on a host (2.74) and is there
#: with every release that has the parameter.
MICROVERSION = '2.74'
#: MiB that are written to a disk, so that its copy takes long.
WRITTEN = 400
#: MiB/s at which a copy is held in mid flight.
SLOW = 1
#: MiB/s that no disk reaches.
FAST = 10000
#: Statuses of a migration that has ended.
ENDED = ('completed', 'failed', 'cancelled', 'error')


class Steps(object):
    """The steps of one guest's scenario.

    :param cloud: a :class:`tests.scenarios.cloud.Cloud`
    :param patience: seconds for what it does
    """

    def __init__(self, cloud, patience=PATIENCE):
        self.cloud = cloud
        self.patience = patience
        self.compute = cloud.connection.compute
        self.compute.default_microversion = MICROVERSION
        self.server = None

    # ---- waiting and judging

    def wait_until(self, predicate, what, timeout=None, interval=0.5):
        """Wait until something is true.

        :param timeout: seconds; by default the patience with the cloud
        :returns: what the predicate returned
        :raises Violation: it is not true in time
        """
        timeout = timeout or self.patience
        end = time.monotonic() + timeout
        while True:
            found = predicate()
            if found:
                return found
            if time.monotonic() > end:
                raise clouds.Violation('not after %d s: %s; %s' % (
                    timeout, what, self.describe()))
            time.sleep(interval)

    def must(self, condition, rule):
        """Require a rule.

        :raises Violation: it is broken
        """
        if not condition:
            raise clouds.Violation('%s; %s' % (rule, self.describe()))

    def describe(self):
        """What Nova and every libvirt say of the guest."""
        return 'nova: %s; migrations: %s; libvirt: %s' % (
            self.nova_says(), self.migrations(),
            {host: self.domain(host) for host in self.cloud.hosts})

    # ---- the API

    def boot(self):
        """Boot a guest on the first host, and wait until it runs there."""
        host = self.cloud.hosts[0]
        self.cloud.say('boot a guest on %s' % host)
        self.server = self.compute.create_server(
            name='scenario', host=host, networks=self.cloud.networks,
            flavor_id=self.compute.find_flavor(self.cloud.flavor, False).id,
            image_id=self.cloud.connection.image.find_image(
                self.cloud.image, False).id)
        self.wait_until(lambda: self.nova_says() == ('active', None, host),
                        'it is built')

    def nova_says(self):
        """(vm_state, task_state, host)"""
        found = self.compute.get_server(self.server.id)
        return found.vm_state, found.task_state, found.compute_host

    def migrations(self):
        """[(destination, status)], the oldest first."""
        found = self.compute.get('/os-migrations', params={
            'instance_uuid': self.server.id}, microversion='2.59')
        exceptions.raise_from_response(found)
        return [(migration['dest_compute'], migration['status'])
                for migration in sorted(found.json()['migrations'],
                                        key=lambda found: found['id'])]

    def live_migrate(self, host):
        """Ask for a live migration with its disk, once that is accepted.

        :raises Violation: Nova refuses
        """
        self.cloud.say('live migrate it to %s' % host)
        before = len(self.migrations())
        try:
            self.compute.live_migrate_server(
                self.server.id, host=host, block_migration='auto')
        except exceptions.HttpException as e:
            raise clouds.Violation('Nova refuses: %s; %s' % (
                e, self.describe()))
        self.wait_until(lambda: self.migrations()[before:],
                        'the migration has a record')

    def finish_migration(self):
        """Let the newest migration go on to its end; returns its status."""
        def ended():
            status = self.migrations()[-1][1]
            if status not in ENDED:
                self.set_speed(FAST)
            return status if status in ENDED else None
        return self.wait_until(ended, 'the migration has ended', interval=2)

    def create_image(self, name):
        self.cloud.say('create image %s of it' % name)
        self.compute.create_server_image(self.server.id, name, wait=False)

    def images(self, name):
        """The statuses of the images of a name."""
        return [image.status for image in
                self.cloud.connection.image.images(name=name)]

    def allocations(self, consumer):
        """The hosts on which Placement has allocations of a consumer."""
        placement = self.cloud.connection.placement
        found = placement.get('/allocations/' + consumer)
        exceptions.raise_from_response(found)
        names = []
        for provider in found.json()['allocations']:
            found = placement.get('/resource_providers/' + provider)
            exceptions.raise_from_response(found)
            names.append(found.json()['name'])
        return sorted(names)

    def migration_uuids(self):
        found = self.compute.get('/os-migrations', params={
            'instance_uuid': self.server.id}, microversion='2.59')
        return [migration['uuid'] for migration in found.json()['migrations']]

    def delete(self):
        """Delete the guest, if it was booted."""
        if self.server is not None:
            with contextlib.suppress(exceptions.NotFoundException):
                self.compute.reset_server_state(self.server.id, 'active')
            self.compute.delete_server(self.server.id, ignore_missing=True)

    # ---- libvirt

    def virsh(self, host, *argv):
        """What virsh printed on a host; None when it failed."""
        try:
            return self.cloud.run(host, 'virsh', '--quiet', '--connect',
                                  'qemu:///system', *argv)
        except subprocess.CalledProcessError:
            return None

    def domain(self, host):
        """The state of the guest's domain on a host, or None."""
        state = self.virsh(host, 'domstate', self.server.id)
        return state.strip() if state is not None else None

    def running_on(self):
        """The hosts on which the guest runs."""
        return [host for host in self.cloud.hosts
                if self.domain(host) == 'running']

    def job(self, host):
        """Whether libvirt runs a migration of the guest from a host."""
        said = self.virsh(host, 'domjobinfo', self.server.id) or ''
        return 'Outgoing migration' in said and 'None' not in re.findall(
            r'Job type:\s*(\w+)', said)

    def block_job(self, host):
        """Percent of the disk that a block job has copied, or None."""
        said = self.virsh(host, 'blockjob', self.server.id, self.disk(host),
                          '--info', '--raw') or ''
        numbers = dict(re.findall(r'(cur|end)=(\d+)', said))
        if not numbers:
            return None
        return 100.0 * int(numbers['cur']) / max(1, int(numbers['end']))

    def disk(self, host):
        """The name of the guest's first disk."""
        said = self.virsh(host, 'domblklist', self.server.id) or ''
        return (said.split() or ['vda'])[0]

    def set_speed(self, speed):
        """Set how fast the guest's jobs copy, in MiB/s."""
        # a domain that arrives is not asked: libvirt answers after 30 s
        for host in self.running_on():
            # libvirt changes neither while it migrates
            self._monitor(host, 'migrate-set-parameters',
                          **{'max-bandwidth': speed << 20})
            for job in self._monitor(host, 'query-block-jobs'):
                self._monitor(host, 'block-job-set-speed',
                              device=job['device'], speed=speed << 20)

    def slow_block_job(self, host):
        """Let the guest's block job take minutes; False while there is none.

        A copy takes parts of a second: nothing else is asked before.
        """
        jobs = self._monitor(host, 'query-block-jobs')
        for job in jobs:
            self._monitor(host, 'block-job-set-speed', device=job['device'],
                          speed=SLOW << 20)
        return bool(jobs)

    def _monitor(self, host, command, **arguments):
        """What the guest's QEMU answers; nothing when it refuses."""
        said = self.virsh(host, 'qemu-monitor-command', self.server.id,
                          json.dumps({'execute': command,
                                      'arguments': arguments}))
        return json.loads(said or '{}').get('return', [])

    def fill_disk(self):
        """Write to the guest's disk, while it is off."""
        host = self.cloud.hosts[0]
        self.cloud.say('write %d MiB to its disk' % WRITTEN)
        self.compute.stop_server(self.server.id)
        self.wait_until(lambda: self.nova_says()[:2] == ('stopped', None),
                        'it is stopped')
        listed = self.virsh(host, 'domblklist', self.server.id).split()
        kind = self.virsh(host, 'dumpxml', self.server.id)
        self.cloud.run(host, 'qemu-io', '-f',
                       re.search(r"type='(raw|qcow2)'", kind).group(1), '-c',
                       'write 128M %dM' % WRITTEN, listed[1])
        self.compute.start_server(self.server.id)
        self.wait_until(lambda: self.nova_says() == ('active', None, host),
                        'it is started')

    # ---- both

    def begin_migration(self):
        """Migrate from the first host to the second until it is copied."""
        first, second = self.cloud.hosts[:2]
        self.live_migrate(second)

        def copied():
            if self.migrations()[-1][1] in ENDED:
                raise clouds.TooLate('the migration has ended')
            if self.block_job(first) is None:
                return False
            self.set_speed(SLOW)
            return self.migrations()[-1][1] == 'running'
        self.wait_until(copied, 'it is copied', interval=0.1)

    def kill_compute_in_flight(self):
        """Kill the first host's nova-compute, and see the job outlive it.

        :raises TooLate: libvirt had ended it before
        """
        host = self.cloud.hosts[0]
        self.cloud.say('kill nova-compute on %s' % host)
        self.cloud.kill_compute(host)
        if not self.job(host):
            raise clouds.TooLate('no migration job was left on %s' % host)

    def start_compute(self):
        self.cloud.say('start nova-compute on %s' % self.cloud.hosts[0])
        self.cloud.start_compute(self.cloud.hosts[0])

    def must_be_settled_on(self, host, *statuses):
        """Idle on a host, and nothing is left of the migration.

        :param host: where it is, and runs alone
        :param statuses: that the newest migration may have ended with
        """
        self.wait_until(lambda: self.nova_says() == ('active', None, host),
                        'it is idle on %s' % host)
        # what other hosts clean up they are asked for by casts
        self.wait_until(lambda: self.running_on() == [host] and all(
            self.domain(other) is None for other in self.cloud.hosts
            if other != host), 'it runs on %s alone' % host, 60)
        self.must(not self.job(host), 'no job is left behind an idle guest')
        self.must(self.migrations()[-1][1] in statuses,
                  'the migration is %s' % ' or '.join(statuses))
        self.wait_until(lambda: self.allocations(self.server.id) == [host],
                        'Placement has it on %s' % host, 60)
        for uuid in self.migration_uuids():
            self.must(self.allocations(uuid) == [],
                      'no migration holds an allocation: %s' %
                      self.allocations(uuid))

    def must_migrate_to(self, host):
        """The next migration does what it should."""
        self.live_migrate(host)
        self.must(self.finish_migration() == 'completed',
                  'the next migration completes')
        self.must_be_settled_on(host, 'completed')
