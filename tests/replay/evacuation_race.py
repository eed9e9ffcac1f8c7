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

"""The resource audit of a host races the arrival of guests."""

import collections

from nova.virt.libvirt import driver

from tests.functional import races
from tests.functional import releases
from tests.replay import scenarios


class EvacuationRace(scenarios.Scenario):
    """The resource audit races the arrival of guests (bug 1896463).

    They arrive by evacuation where that race is open, and else by live
    migration, where it is open in every release. All of them are about to
    arrive when the audit begins.
    """

    STOCK = scenarios.VF_GIVEN_TWICE

    GUESTS = 20
    PORTS = 3

    def play(self):
        self.cloud.flags(max_concurrent_live_migrations=self.GUESTS,
                         rpc_response_timeout=300)
        self.cloud.flags(instances=-1, cores=-1, ram=-1, group='quota')
        self.cloud.enable_pci()
        for host in ('host-a', 'host-b'):
            self.cloud.start_host(host, releases.pci_devices(
                self.GUESTS // 2, self.GUESTS * self.PORTS))
        flavor = self.cloud.create_flavor()
        for number in range(self.GUESTS):
            name = 'guest %d' % (number + 1)
            self.servers[name] = self.cloud.boot(
                'host-a', flavor=flavor, name=name,
                networks=self._ports(number))
        self._moving = list(self.servers.values())
        self.event(scenarios.USER,
                   'creates %d servers with %d SR-IOV ports each on host-a' % (
                       self.GUESTS, self.PORTS))
        self._audit = self.cloud.useFixture(races.AuditAcrossArrival(
            self.cloud, 'host-b', self._are_written_down, patience=300))
        if releases.evacuation_races_audit():
            self._evacuate()
        else:
            self._live_migrate()
        self._audit.end()
        self.event(scenarios.nova_compute('host-b'),
                   'the audit reads the migrations in progress, and ends')
        self._boot_another(flavor)
        return self.verdict()

    def _ports(self, number):
        """The ports of one guest, for the API."""
        return [{'port': self.cloud.create_sriov_port(
            number * self.PORTS + port + 1)} for port in range(self.PORTS)]

    # ---- what is true now: too much for a sentence on each guest

    def _nova(self):
        """What Nova says of the servers, and of the devices on B."""
        said = self._counted('%d x %s on %s', [
            (says.vm_state.upper() + (
                '/' + says.task_state if says.task_state else ''), says.host)
            for says in map(self.cloud.nova_says, self._moving)])
        said.extend(self._counted('%d x migration %s -> %s', [
            (status, host) for server in self._moving for host, status in
            self.cloud.migration_statuses(server)[-1:]]))
        if 'another' in self.servers:
            said.extend(self._nova_of('another', self.servers['another']))
        said.extend(self._counted('%d VFs on host-b %s', [
            (status,) for status, _ in
            self.cloud.devices('host-b').values()]))
        return '; '.join(said)

    @staticmethod
    def _counted(text, values):
        return [text % ((count,) + value) for value, count in
                sorted(collections.Counter(values).items(), key=str)]

    def _host(self, host):
        said = [] if host in self.cloud.processes else ['nova-compute down']
        said.extend(self._counted('%d guests %s', [
            (self.cloud.where(server)[host],)
            for server in self.servers.values()
            if host in self.cloud.where(server)]))
        used = self._devices(host)
        if used:
            said.append('%d VFs in guests' % len(used))
        said.extend(device for device in used if ' and ' in device)
        return '; '.join(said)

    # ---- steps

    def _are_written_down(self):
        return all(
            self.cloud.nova_says(server).host == 'host-b' and
            self.cloud.migrations(server)[-1].status in ('done', 'completed')
            for server in self._moving)

    def _begin_audit_after(self, step):
        """Begin it when all guests have come to a step on B."""
        come = []
        has_read = []

        def on_b(virt_driver):
            process = virt_driver._host.get_connection().process
            if process.host != 'host-b' or len(come) >= self.GUESTS:
                return
            come.append(None)
            if len(come) == self.GUESTS:
                self._audit.begin()
                self.event(scenarios.nova_compute('host-b'),
                           'the audit reads the instances of its host')
                has_read.append(None)
            self.cloud.wait_until(lambda: has_read,
                                  lambda: 'all guests come to %s, not %d' % (
                                      step, len(come)), timeout=300)
        self.cloud.useFixture(races.CallAfter(
            driver.LibvirtDriver, step, on_b))

    def _evacuate(self):
        self.cloud.crash_host('host-a')
        self.cloud.force_down('host-a')
        self.event('host-a', 'loses power')
        self._begin_audit_after('spawn')
        for server in self._moving:
            self.cloud.evacuate(server, 'host-b')
        self._wait_until_all_arrived()
        self.event(scenarios.OPERATOR, 'has evacuated the servers to host-b')

    def _live_migrate(self):
        self._begin_audit_after('post_live_migration_at_destination')
        for server in self._moving:
            self.cloud.live_migrate(server, 'host-b')
        jobs = [self.cloud.wait_for_job(server, timeout=300)
                for server in self._moving]
        self.event(scenarios.OPERATOR, 'live-migrates the servers to host-b')
        for job in jobs:
            job.complete()
        self.event(scenarios.LIBVIRT,
                   'ends the copies; the guests run on host-b')
        self._wait_until_all_arrived()
        self.event(scenarios.nova_compute('host-a'), 'ends the migrations')

    def _wait_until_all_arrived(self):
        self.cloud.wait_until(
            lambda: self._are_written_down() and not any(
                self.cloud.nova_says(server).task_state
                for server in self._moving),
            lambda: 'all have arrived: %s' % self._nova(), timeout=300)

    def _boot_another(self, flavor):
        self.servers['another'] = self.cloud.boot_any(
            'host-b', flavor=flavor, name='another',
            networks=self._ports(self.GUESTS))
        self.event(scenarios.USER, 'creates another server with such ports')
