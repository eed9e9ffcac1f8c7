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


"""The record of what everyone says of one instance at one time."""

import dataclasses
import typing


@dataclasses.dataclass
class Server:
    """What Nova's API says; status is DELETED when there is no server.

    ``fault`` is the message of the server's fault, or None.
    """
    status: str
    vm_state: typing.Optional[str] = None
    task_state: typing.Optional[str] = None
    power_state: typing.Optional[int] = None
    host: typing.Optional[str] = None
    fault: typing.Optional[str] = None


@dataclasses.dataclass
class Migration:
    """A row of Nova's database."""
    id: int
    uuid: str
    source: str
    dest: str
    type: str
    status: str


@dataclasses.dataclass
class Port:
    """A port of Neutron, and where it is bound.

    :ivar host: the binding that is in force
    :ivar bindings: {host: status}: 'ACTIVE' or 'INACTIVE'
    :ivar migrating_to: {host: host}, what the bindings' profiles say
    """
    id: str
    status: str
    host: str
    bindings: dict
    migrating_to: dict

    def __str__(self):
        words = ['%s %s%s' % (
            host, status, ', migrating to %s' % self.migrating_to[host]
            if host in self.migrating_to else '')
            for host, status in sorted(self.bindings.items())]
        return 'port %s: %s; bindings: %s' % (
            self.id[:8], self.status, '; '.join(words) or 'none')


@dataclasses.dataclass
class Attachment:
    """An attachment of Cinder.

    :ivar host: where it is for; None before a host has connected
    :ivar nova: whether it is the one that Nova knows
    """
    id: str
    status: str
    host: typing.Optional[str]
    nova: bool

    def __str__(self):
        return '%s %s for %s%s' % (
            self.id[:8], self.status, self.host,
            ', known to Nova' if self.nova else '')


@dataclasses.dataclass
class Volume:
    """A volume of Cinder; status is None when it is gone."""
    id: str
    status: typing.Optional[str]
    attachments: list

    def __str__(self):
        return 'volume %s: %s; attachments: %s' % (
            self.id[:8], self.status,
            '; '.join(str(a) for a in self.attachments) or 'none')


@dataclasses.dataclass
class Host:
    """What there is of the instance on one host.

    :ivar domain: what libvirt says: {name, state, reason, persistent}, or
        None when it has no such domain
    :ivar job: {operation, memory, processed, remaining} of the domain's job,
        the amounts in bytes; or None. A migration copies memory last.
    :ivar disks: {disk: {job, bandwidth, done, size}}, those with a block job
    :ivar asked: whether libvirt could be asked for jobs and did answer
    :ivar trouble: why libvirt does not answer at all, or None
    :ivar emulators: for each QEMU, known to libvirt or not, 'running' or
        'frozen'
    :ivar console: the last tick of the console, or None
    :ivar disk: the tick that the disk holds, or None
    :ivar ticks: whether the console has grown while the record was made
    :ivar files: {name: MiB}, or None without a folder
    :ivar devices: tap devices of its ports on the host's switch
    """
    domain: typing.Optional[dict] = None
    job: typing.Optional[dict] = None
    disks: dict = dataclasses.field(default_factory=dict)
    asked: bool = False
    trouble: typing.Optional[str] = None
    emulators: list = dataclasses.field(default_factory=list)
    console: typing.Optional[int] = None
    disk: typing.Optional[int] = None
    ticks: bool = False
    files: typing.Optional[dict] = None
    devices: list = dataclasses.field(default_factory=list)

    @property
    def has_job(self):
        return self.job is not None or bool(self.disks)

    def __str__(self):
        if self.trouble:
            words = ['libvirt: ' + self.trouble]
        elif self.domain is None:
            words = ['no domain']
        elif 'state' not in self.domain:
            words = [self.domain['error']]
        else:
            words = ['%(state)s (%(reason)s)' % self.domain,
                     'persistent' if self.domain['persistent'] else
                     'transient']
            words.append(self._jobs())
        if self.emulators:
            words.append('QEMU ' + ', '.join(self.emulators))
        if self.console is not None:
            words.append('tick %d%s' % (
                self.console, '' if self.ticks else ', stands still'))
        if self.files:
            words.append('files ' + ', '.join(
                '%s %d MiB' % item for item in sorted(self.files.items())))
        if self.disk is not None:
            words.append('disk holds tick %d' % self.disk)
        words += self.devices
        return '; '.join(word for word in words if word)

    def _jobs(self):
        if not self.asked:
            return 'not asked for jobs'
        words = []
        if self.job:
            words.append(self.job['operation'])
            if self.job['memory']:
                words.append('%d KiB of memory' % (self.job['memory'] >> 10))
        words += ['%s of %s at %d %%' % (
            info['job'], disk, 100 * info['done'] // max(1, info['size']))
            for disk, info in sorted(self.disks.items())]
        return 'job: ' + ', '.join(words) if words else 'no job'


@dataclasses.dataclass
class State:
    """All of it.

    :ivar server: Server
    :ivar record: {column: text} of the row in Nova's table of instances
    :ivar migrations: list of Migration, oldest first
    :ivar allocations: {consumer: {host: {class: amount}}}; the consumer is
        'instance' or 'migration N'
    :ivar hosts: {name: Host}
    :ivar ports: list of Port; empty in the light form
    :ivar volumes: list of Volume; empty in the light form
    """
    server: Server
    record: dict
    migrations: list
    allocations: dict
    hosts: dict
    ports: list = dataclasses.field(default_factory=list)
    volumes: list = dataclasses.field(default_factory=list)

    @property
    def nova(self):
        """(vm_state, task_state, host): what Nova says in short."""
        return (self.server.vm_state, self.server.task_state,
                self.server.host)

    @property
    def running_on(self):
        """Names of the hosts on which the guest makes progress."""
        return [name for name, host in self.hosts.items() if host.ticks]

    @property
    def statuses(self):
        """[(destination, status)] of the migrations, oldest first."""
        return [(m.dest, m.status) for m in self.migrations]

    def as_dict(self):
        """All of it, of types that JSON knows."""
        return dataclasses.asdict(self)

    def __str__(self):
        server = self.server
        lines = ['nova: %s, vm_state %s, task_state %s, host %s' % (
            server.status, server.vm_state, server.task_state, server.host)]
        if server.fault:
            lines.append('fault: ' + server.fault)
        lines += ['migration %d: %s -> %s, %s' % (
            m.id, m.source, m.dest, m.status) for m in self.migrations]
        for consumer, hosts in sorted(self.allocations.items()):
            for host, amounts in sorted(hosts.items()):
                held = ', '.join('%s %s' % item
                                 for item in sorted(amounts.items()))
                lines.append('placement: %s holds %s of %s' % (
                    consumer, held, host))
        lines += [str(port) for port in self.ports]
        lines += [str(volume) for volume in self.volumes]
        lines += ['%s: %s' % item for item in self.hosts.items()]
        return '\n'.join(lines)
