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


"""Print what a libvirt runs, as two lines of JSON.

    probe_libvirt.py [UUID ...]

The first line has what libvirt knows by itself: {uuid: {name, state, reason,
persistent}}. The second one has what it asks QEMU for: {uuid: {job, disks}}.
Such a question can hang (while QEMU does not run) or block for half a minute
(on the destination of a migration), so the reader need not wait for it, no
such question is asked about domains that a migration brings in, and none about
the domains that are named on the command line.
"""

import json
import sys

import libvirt

INCOMING = (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_MIGRATION)
#: VIR_DOMAIN_BLOCK_JOB_TYPE_*
BLOCK_JOBS = {1: 'pull', 2: 'copy', 3: 'commit', 4: 'active commit',
              5: 'backup'}
#: VIR_DOMAIN_JOB_OPERATION_*
OPERATIONS = {2: 'save', 3: 'restore', 4: 'migration in', 5: 'migration out',
              6: 'snapshot', 7: 'snapshot revert', 8: 'dump', 9: 'backup'}


def constants(prefix, names=None):
    """{value: name} of libvirt's constants, or of those that are named."""
    return {value: name[len(prefix):].lower()
            for name, value in vars(libvirt).items()
            if name.startswith(prefix) and isinstance(value, int) and
            (names is None or name[len(prefix):].lower() in names)}


STATES = constants('VIR_DOMAIN_', (
    'nostate', 'running', 'blocked', 'paused', 'shutdown', 'shutoff',
    'crashed', 'pmsuspended'))


def describe(domain):
    state, reason = domain.state()
    name = STATES.get(state, str(state))
    reasons = constants('VIR_DOMAIN_%s_' % name.upper())
    return {'name': domain.name(), 'state': name,
            'reason': reasons.get(reason, str(reason)),
            'persistent': bool(domain.isPersistent())}


def jobs(domain):
    found = {'job': None, 'disks': {}}
    stats = domain.jobStats()
    if stats.get('type'):
        operation = stats.get('operation')
        found['job'] = {
            'operation': OPERATIONS.get(operation, str(operation)),
            'memory': stats.get('memory_processed', 0),
            'processed': stats.get('data_processed', 0),
            'remaining': stats.get('data_remaining', 0)}
    for disk in ('vda', 'vdb'):
        try:
            info = domain.blockJobInfo(disk)
        except libvirt.libvirtError:
            # there is no such disk
            continue
        if info and info.get('type'):
            found['disks'][disk] = {
                'job': BLOCK_JOBS.get(info['type'], str(info['type'])),
                'bandwidth': info['bandwidth'], 'done': info['cur'],
                'size': info['end']}
    return found


def each(domains, function):
    """{uuid: function(domain)} of those that are still there."""
    found = {}
    for uuid, domain in domains.items():
        try:
            found[uuid] = function(domain)
        except libvirt.libvirtError as e:
            if e.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                found[uuid] = {'error': str(e)}
    return found


def main():
    left_out = sys.argv[1:]
    libvirt.registerErrorHandler(lambda *args: None, None)
    connection = libvirt.openReadOnly('qemu:///system')
    domains = {domain.UUIDString(): domain
               for domain in connection.listAllDomains()}
    print(json.dumps(each(domains, describe)), flush=True)
    asked = {}
    for uuid, domain in domains.items():
        try:
            active = domain.isActive()
            incoming = tuple(domain.state()) == INCOMING
        except libvirt.libvirtError:
            continue
        if active and not incoming and uuid not in left_out:
            asked[uuid] = domain
    print(json.dumps(each(asked, jobs)), flush=True)


if __name__ == '__main__':
    main()
