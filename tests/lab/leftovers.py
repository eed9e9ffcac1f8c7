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

"""What is not as it should be for a server that is idle on one host."""

ENDED = ('completed', 'failed', 'cancelled', 'error')


def of(state):
    """What an operation has left behind.

    :param state: State
    :returns: list of texts; empty when the guest runs on the host that Nova
        says, and everything that is its is there and nowhere else
    """
    host = state.server.host
    found = _nova(state, host) + _placement(state, host)
    for port in state.ports:
        found += _port(port, host)
    for volume in state.volumes:
        found += _volume(volume, host)
    for name, other in state.hosts.items():
        found += _own_host(name, other) if name == host else _host(name,
                                                                   other)
    return found


def of_deleted(state):
    """What is left behind of a server that its user has deleted.

    :param state: State
    :returns: list of texts; empty when nothing is there anywhere
    """
    found = _open_migrations(state)
    if state.server.status != 'DELETED':
        found.append('Nova: %s' % state.server.status)
    found += ['%s holds resources of %s' % (consumer, name)
              for consumer, hosts in sorted(state.allocations.items())
              for name in sorted(hosts)]
    found += ['port %s' % port.id for port in state.ports]
    found += ['attachment for %s' % attachment.host
              for volume in state.volumes for attachment in volume.attachments]
    for name, host in state.hosts.items():
        found += _host(name, host)
    return found


def _open_migrations(state):
    return ['migration %d: %s' % (m.id, m.status)
            for m in state.migrations if m.status not in ENDED]


def _nova(state, host):
    found = []
    server = state.server
    if (server.vm_state, server.task_state) != ('active', None):
        found.append('Nova: %s on %s' % (server.status, host))
    if state.running_on != [host]:
        found.append('the guest runs on %s, Nova says %s' % (
            ' and '.join(state.running_on) or 'no host', host))
    return found + _open_migrations(state)


def _placement(state, host):
    found = []
    if host not in state.allocations.get('instance', {}):
        found.append('the instance holds nothing of %s' % host)
    return found + [
        '%s holds resources of %s' % (consumer, name)
        for consumer, hosts in sorted(state.allocations.items())
        for name in sorted(hosts) if (consumer, name) != ('instance', host)]


def _port(port, host):
    found = []
    if port.bindings.get(host) != 'ACTIVE':
        found.append('no active binding for %s' % host)
    found += ['%s binding for %s' % (status, name)
              for name, status in sorted(port.bindings.items())
              if name != host]
    return found + ['binding for %s says migrating_to %s' % item
                    for item in sorted(port.migrating_to.items())]


def _volume(volume, host):
    found = []
    for attachment in volume.attachments:
        if attachment.host != host:
            found.append('attachment for %s%s' % (
                attachment.host, ', the one that Nova knows'
                if attachment.nova else ''))
    if not any((a.host, a.nova) == (host, True) for a in volume.attachments):
        found.append('Nova knows no attachment for %s' % host)
    return found


def _own_host(name, host):
    if host.trouble:
        return ['libvirt on %s: %s' % (name, host.trouble)]
    if host.domain is None:
        return ['no domain on %s' % name]
    found = []
    if host.has_job:
        found.append('a job on %s' % name)
    if not host.domain.get('persistent'):
        found.append('the domain on %s is transient' % name)
    return found


def _host(name, host):
    found = []
    if host.domain is not None:
        found.append('a domain on %s, %s' % (
            name, host.domain.get('state', 'of unknown state')))
    elif host.emulators:
        found.append('a QEMU on %s' % name)
    if host.devices:
        found.append('a tap on %s' % name)
    if host.files is not None:
        found.append('files of %d MiB on %s' % (
            sum(host.files.values()), name))
    return found
