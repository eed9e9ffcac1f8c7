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


"""Asks everyone about one instance."""

import concurrent.futures
import time

from tests.lab import clients
from tests.lab import host as compute_host
from tests.lab import openvswitch
from tests.lab import state

#: Seconds in which a guest that runs ticks at least once, also on a machine
#: that is busy; and how often to look whether it has.
TICK = 2.5
LOOK = 0.1
RECORD = ('host', 'node', 'vm_state', 'task_state', 'power_state', 'deleted')
MIGRATION = ('id', 'uuid', 'source_compute', 'dest_compute', 'migration_type',
             'status')


class Observer(object):
    """Of one deployment."""

    def __init__(self, deployment):
        self._parts = deployment

    def observe(self, server):
        """Make the record of one instance.

        A QEMU whose guest does not run is watched for longer than a guest
        needs for a tick. Hosts are asked side by side, since one of them may
        not answer.

        :param server: uuid
        :returns: state.State
        """
        begun = time.monotonic()
        hosts = self._parts.hosts
        before = {name: h.console_tick(server) for name, h in hosts.items()}
        with concurrent.futures.ThreadPoolExecutor(len(hosts)) as pool:
            asked = {name: pool.submit(self._host, h, server)
                     for name, h in hosts.items()}
            migrations = self.migrations(server)
            record = self._rows('instances', RECORD, uuid=server)
            found = state.State(
                server=self._server(server), record=(record + [{}])[0],
                migrations=migrations,
                allocations=self._allocations(server, migrations),
                ports=self._ports(server), volumes=self._volumes(server),
                hosts={name: job.result() for name, job in asked.items()})
        self._add_devices(found)
        self._watch(found, server, before, begun + TICK)
        return found

    def _watch(self, found, server, before, end):
        """See whose console grows.

        :param before: {host: last tick at the beginning}
        :param end: on the monotonic clock, when each guest has had its time
        """
        hosts = self._parts.hosts
        silent = [name for name in hosts if found.hosts[name].emulators]
        while silent and time.monotonic() < end:
            time.sleep(LOOK)
            silent = [name for name in silent
                      if hosts[name].console_tick(server) == before[name]]
        for name, h in hosts.items():
            seen = found.hosts[name]
            seen.console = h.console_tick(server)
            seen.disk = h.disk_tick(server)
            seen.ticks = (seen.console is not None and
                          seen.console != before[name])

    def _rows(self, table, columns, **where):
        (column, value), = where.items()
        # no parameters: it goes through the command line client; the values
        # come from Nova itself
        return self._parts.database.rows(
            'nova', "select %s from %s where %s = '%s'" % (  # noqa: S608
                ', '.join(columns), table, column, value))

    def _server(self, uuid):
        try:
            server = self._parts.nova.get('/servers/' + uuid)['server']
        except clients.ApiError as e:
            if e.status != 404:
                raise
            return state.Server('DELETED')
        return state.Server(
            server['status'], server['OS-EXT-STS:vm_state'],
            server['OS-EXT-STS:task_state'],
            server['OS-EXT-STS:power_state'],
            server['OS-EXT-SRV-ATTR:host'],
            server.get('fault', {}).get('message'))

    def migrations(self, uuid):
        """All migrations of a server, oldest first: list of Migration."""
        rows = self._rows('migrations', MIGRATION, instance_uuid=uuid)
        rows.sort(key=lambda row: int(row['id']))
        return [state.Migration(
            int(row['id']), row['uuid'], row['source_compute'],
            row['dest_compute'], row['migration_type'], row['status'])
            for row in rows]

    def _allocations(self, server, migrations):
        consumers = {m.uuid: 'migration %d' % m.id for m in migrations}
        consumers[server] = 'instance'
        placement = self._parts.placement
        providers = {p['uuid']: p['name'] for p in placement.get(
            '/resource_providers')['resource_providers']}
        found = {}
        for uuid, name in consumers.items():
            held = placement.get('/allocations/' + uuid)['allocations']
            if held:
                found[name] = {providers[provider]: amounts['resources']
                               for provider, amounts in held.items()}
        return found

    def _ports(self, server):
        if not self._parts.full:
            return []
        neutron = self._parts.full.neutron
        found = []
        for port in neutron.ports(server):
            bindings = neutron.bindings(port['id'])
            found.append(state.Port(
                port['id'], port['status'], port['binding:host_id'],
                {b['host']: b['status'] for b in bindings},
                {b['host']: b['profile']['migrating_to'] for b in bindings
                 if b['profile'].get('migrating_to')}))
        return found

    def _volumes(self, server):
        if not self._parts.full:
            return []
        cinder = self._parts.full.cinder
        known = {row['volume_id']: row['attachment_id'] for row in self._rows(
            'block_device_mapping', ('volume_id', 'attachment_id', 'deleted'),
            instance_uuid=server) if row['volume_id'] and
            row['deleted'] == '0'}
        attachments = {volume: [] for volume in known}
        for row in cinder.attachments(server):
            attachments.setdefault(row['volume_id'], []).append(
                state.Attachment(
                    row['id'], row['attach_status'], row['host'],
                    known.get(row['volume_id']) == row['id']))
        return [state.Volume(volume, cinder.status(volume), rows)
                for volume, rows in attachments.items()]

    def _add_devices(self, found):
        """Say which of the hosts' switches have a device of the ports."""
        if not found.ports:
            return
        wanted = {openvswitch.device(port.id) for port in found.ports}
        for name, switch in self._parts.full.switches.items():
            found.hosts[name].devices = sorted(
                wanted.intersection(switch.devices()))

    @staticmethod
    def _host(host, server):
        found = state.Host(files=host.files(server))
        found.emulators = ['frozen' if e.frozen else 'running'
                           for e in host.emulators() if e.uuid == server]
        try:
            domain = host.domains().get(server)
        except compute_host.LibvirtAway as e:
            found.trouble = str(e)
            return found
        if domain is not None:
            found.asked = 'job' in domain
            found.job = domain.pop('job', None)
            found.disks = domain.pop('disks', {})
            found.domain = domain
        return found
