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


"""What can be done to a lab, and what is seen of it.

Each action says what it does, with the time, on standard error. Hosts are
named as Nova names them: 'host-a', 'host-b', 'host-c'. A server is a uuid.
"""

import contextlib

from tests.lab import clients
from tests.lab import deployment
from tests.lab import host as compute_host
from tests.lab import namespaces
from tests.lab import observer
from tests.lab import operations
from tests.lab import progress
from tests.lab import waiting

#: Percent of the first disk that must be copied, so that a migration is in
#: mid flight; and how many more make it too late to call it that.
UNDER_WAY = 0.3
TOO_LATE = 40
#: B/s: the memory of a guest, which is nearly all zero and so little to send,
#: takes some minutes.
SLOW_MEMORY = 1024


class MigrationOver(AssertionError):
    """A migration that should be in flight is not, or is nearly over."""


class Lab(operations.Operations):
    """A lab that is up.

    :param parts: Deployment
    """

    def __init__(self, parts):
        super(Lab, self).__init__(parts)
        self._observer = observer.Observer(parts)

    # ---- users

    def boot(self, host, name='guest'):
        """Boot a server on a host, and wait until its guest ticks.

        In the full form it has a port.

        :returns: its uuid
        """
        full = self.parts.full
        images = self.parts.glance.get('/v2/images?name=guest')['images']
        server = self.parts.nova.call('POST', '/servers', {'server': {
            'name': name, 'flavorRef': 'lab', 'imageRef': images[0]['id'],
            'networks': [{'uuid': full.neutron.network()}] if full else
            'none', 'host': host}})['server']['id']
        progress.say('boot %s on %s' % (server, host))
        self.wait_until(
            lambda: self.nova_says(server)[:2] == ('active', None), server,
            'is built')
        self.wait_until(lambda: self.hosts[host].console_tick(server),
                        server, 'ticks on %s' % host)
        return server

    def servers(self, name):
        """The servers of a name: list of uuids."""
        return [found['id'] for found in self.parts.nova.get(
            '/servers?all_tenants=1&name=%s' % name)['servers']]

    def attach_volume(self, server):
        """Attach a volume of its own to a server; in the full form only.

        :returns: uuid of the volume
        """
        progress.say('attach a volume to %s' % server)
        return self.parts.full.attach(self.parts.nova, server)

    def live_migrate(self, server, host=None):
        """Ask for a live migration with its disks.

        :param host: destination; the scheduler's choice by default
        :returns: the new Migration
        :raises clients.ApiError: Nova refuses
        """
        progress.say('live migrate %s to %s' % (server, host))
        before = len(self.migrations(server))
        self._action(server, {'os-migrateLive': {
            'host': host, 'block_migration': 'auto'}})
        # the conductor makes the record, after the API has answered
        return self.wait_until(lambda: self.migrations(server)[before:],
                               server, 'has a record of the migration')[0]

    def abort_migration(self, server):
        """Ask for an abort of a server's newest live migration."""
        progress.say('abort the migration of %s' % server)
        self.parts.nova.call('DELETE', '/servers/%s/migrations/%d' % (
            server, self.migrations(server)[-1].id))

    def delete(self, server):
        """Delete a server, and wait until Nova has no such server."""
        progress.say('delete %s' % server)
        self.parts.nova.call('DELETE', '/servers/' + server)
        self.wait_until(lambda: self.nova_says(server) is None, server,
                        'is deleted')

    def reboot(self, server, kind='HARD'):
        """Ask for a reboot."""
        progress.say('reboot %s of %s' % (kind, server))
        self._action(server, {'reboot': {'type': kind}})

    def stop(self, server):
        """Stop a server, and wait until its guest is off."""
        progress.say('stop %s' % server)
        self._action(server, {'os-stop': None})
        self.wait_until(
            lambda: self.nova_says(server)[:2] == ('stopped', None), server,
            'is stopped')

    def start(self, server):
        """Start a server, and wait until its guest ticks."""
        progress.say('start %s' % server)
        self._action(server, {'os-start': None})
        self.wait_until(
            lambda: self.nova_says(server)[:2] == ('active', None), server,
            'is started')
        self.wait_until(lambda: self.state(server).running_on, server,
                        'ticks')

    def create_image(self, server, name):
        """Ask for an image of a server."""
        progress.say('create image %s of %s' % (name, server))
        self._action(server, {'createImage': {'name': name}})

    def images(self, name):
        """The statuses of the images of a name."""
        return [image['status'] for image in self.parts.glance.get(
            '/v2/images?name=' + name)['images']]

    def wait_for_block_job(self, server, host):
        """Wait until a disk is copied, and let that take minutes.

        :param host: on which the guest runs
        :raises LookupError: the job is over before it could be slowed
        """
        source = self.hosts[host]
        name = source.domains()[server]['name']
        self.wait_until(lambda: source.block_jobs(name), server,
                        'has a block job', interval=0.02)
        source.set_disk_speed(name, 1)
        jobs = source.block_jobs(name)
        progress.say('%s: block jobs %s' % (server, jobs))
        if not any(percent < 100 for percent in jobs.values()):
            raise LookupError('the copy is over')

    def _action(self, server, body):
        self.parts.nova.call('POST', '/servers/%s/action' % server, body)

    def nova_says(self, server):
        """(vm_state, task_state, host) by Nova's API; None without server."""
        try:
            found = self.parts.nova.get('/servers/' + server)['server']
        except clients.ApiError as e:
            if e.status == 404:
                return None
            raise
        return (found['OS-EXT-STS:vm_state'], found['OS-EXT-STS:task_state'],
                found['OS-EXT-SRV-ATTR:host'])

    def why_failed(self, server, action):
        """Why the events of an action failed, as users are told.

        The API has it as details of an event from 2.84 (21.0.0) on.

        :param action: as in ``openstack server event list``
        :returns: list of texts, oldest first
        """
        return [row['details'] for row in self.parts.database.rows(
            'nova', 'select e.details from instance_actions a '  # noqa: S608
            'join instance_actions_events e on e.action_id = a.id '
            "where a.instance_uuid = '%s' and a.action = '%s' "
            "and e.result = 'Error' order by e.id" % (server, action))]

    # ---- migrations

    def wait_for_copy(self, server, source, wanted=UNDER_WAY):
        """Wait until the newest migration is in mid flight.

        :param source: host
        :param wanted: percent of a disk that must be copied
        :raises MigrationOver: it has ended, or is too near to its end
        """
        def under_way():
            migration = self.migrations(server)[-1]
            if migration.status not in ('accepted', 'queued', 'preparing',
                                        'running'):
                raise MigrationOver(str(self.state(server)))
            domain = self.hosts[source].domains().get(server, {})
            disks = domain.get('disks', {}).values()
            percent = max([100.0 * disk['done'] / max(1, disk['size'])
                           for disk in disks] or [0])
            if percent > wanted + TOO_LATE:
                raise MigrationOver('%d %% of the disk is copied' % percent)
            return migration.status == 'running' and percent >= wanted
        self.wait_until(under_way, server, 'is copied')
        progress.say('%s: the copy is under way' % server)

    def migrations(self, server):
        """What Nova's database has of a server: list of Migration."""
        return self._observer.migrations(server)

    def throttle(self, server, bandwidth):
        """Set how fast the migrations of a server copy from now on.

        :param bandwidth: MiB/s; 0: no limit
        :raises LookupError: it runs on no host from which it is migrated
        """
        progress.say('throttle %s: %s' % (
            server, '%d MiB/s' % bandwidth if bandwidth else 'no limit'))
        host, domain = self._source(server)
        host.set_speed(domain['name'], bandwidth)

    def _source(self, server):
        for host in self.hosts.values():
            domain = host.domains().get(server, {})
            if domain.get('job'):
                return host, domain
        raise LookupError('no migration of %s runs' % server)

    def wait_for_memory(self, server):
        """Let the newest migration copy memory, and go on for minutes."""
        progress.say('%s: no limit for the disk, %d B/s for memory' % (
            server, SLOW_MEMORY))
        host, domain = self._source(server)
        host.set_memory_speed(domain['name'], SLOW_MEMORY)
        host.set_disk_speed(domain['name'], 0)

        def copies():
            job = host.domains().get(server, {}).get('job')
            if not job:
                raise MigrationOver(str(self.state(server)))
            return job['memory']
        self.wait_until(copies, server, 'copies memory')

    def finish_migration(self, server):
        """Let the newest migration run to its end, whatever that is.

        :returns: its status
        """
        def ended():
            status = self.migrations(server)[-1].status
            if status in ('completed', 'failed', 'cancelled', 'error'):
                return status
            with contextlib.suppress(LookupError, namespaces.CommandFailed,
                                     compute_host.LibvirtAway):
                self.throttle(server, 0)
            return None
        return self.wait_until(ended, server, 'has migrated', interval=2)

    # ---- seeing

    def observe(self, server):
        """The record of a server: state.State."""
        return self._observer.observe(server)

    def state(self, server, label=''):
        """The record of a server, which is also said.

        :param label: why it is made
        :returns: state.State
        """
        found = self.observe(server)
        progress.say('state%s\n%s' % (
            ' ' + label if label else '',
            '\n'.join('         ' + line
                      for line in str(found).splitlines())))
        return found

    def wait_until(self, predicate, server, what, timeout=operations.PATIENCE,
                   interval=0.5):
        """Wait until something is true of a server.

        :raises waiting.WaitTimeout: it says what is true instead
        """
        return waiting.wait_until(
            predicate, lambda: '%s %s\n%s' % (
                server, what, self.observe(server)),
            timeout, interval)

    # ---- order

    def mend(self):
        """Undo every failure: all runs, everyone reaches everyone."""
        self.heal_network()
        for name, host in self.hosts.items():
            for emulator in host.emulators():
                if emulator.frozen:
                    self.thaw_qemu(emulator.uuid, name)
            if not host.libvirtd.alive:
                self.start_libvirtd(name)
            compute = self.parts.services.computes[name]
            if not compute.alive:
                self.start_compute(name)
            elif compute.frozen:
                self.thaw_compute(name)

    def forget(self, server):
        """Delete a server, and all that is left of it anywhere.

        :returns: what a deletion by Nova has left: list of texts
        """
        migrations = self.migrations(server)
        full = self.parts.full
        devices = full.devices(server) if full else {}
        self.wait_until(lambda: self._is_deleted(server), server,
                        'is deleted', interval=2)
        traces = []
        for host in self.hosts.values():
            traces += host.forget(server)
        if full:
            traces += full.forget(server, devices)
        for consumer in [server] + [m.uuid for m in migrations]:
            path = '/allocations/' + consumer
            if self.parts.placement.get(path)['allocations']:
                traces.append('allocation of ' + consumer)
                self.parts.placement.call('DELETE', path)
        for trace in traces:
            progress.say('left behind: ' + trace)
        return traces

    def _is_deleted(self, server):
        """Ask for a deletion as often as it is refused."""
        said = self.nova_says(server)
        if said and said[1] != 'deleting':
            progress.say('delete %s' % server)
            # it may go, or become busy, between these requests
            with contextlib.suppress(clients.ApiError):
                self._action(server, {'os-resetState': {'state': 'active'}})
                self.parts.nova.call('DELETE', '/servers/' + server)
        return said is None


def connect(settings):
    """The lab of some settings, brought up if it is not up.

    :returns: (Lab, whether it was brought up by this call)
    """
    parts = deployment.Deployment(settings)
    parts.lock()
    if parts.is_up:
        parts.recall()
        progress.say('nova %s is up already' % settings.release)
        return Lab(parts), False
    parts.up()
    return Lab(parts), True
