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

"""What the rules say of an instance when everything has come to rest.

Nova's records are measured by where the guest is: it has to be on one host,
and all that it holds has to be there, is counted there, and nowhere else.
"""

import collections

from nova import context
from nova import objects

from tests.functional import disks
from tests.functional import releases

#: A rule that is broken, and what was seen.
Violation = collections.namedtuple('Violation', 'rule seen')

#: What broke is not one of the rules: the next use of the instance failed.
USE = 'use'

#: Something stays of an instance that was moved and then deleted; where Nova
#: alone does it, too, it is not the guard's.
LEFT = 'left'


class Judge(object):
    """Looks at one instance of a test, once nothing moves any more.

    :param test: the :class:`~tests.functional.cloud.CloudTestCase`
    :param server: the server as the API showed it
    :param before: its footprint before the operation
    :param shared: whether the hosts share its disk
    :param unowned: says whether a migration job is no living process's
    """

    def __init__(self, test, server, before, shared, unowned):
        self._test = test
        self._server = server
        self._before = before
        self._shared = shared
        self._unowned = unowned
        self._found = []

    def _must(self, rule, condition, seen):
        if not condition:
            self._found.append(Violation(rule, str(seen)))

    def of_jobs(self):
        """Every violation by a job, while others may still move."""
        self._found = []
        self._judge_jobs(self._server['id'],
                         self._test.nova_says(self._server))
        return self._found

    def violations(self):
        """Every :class:`Violation`."""
        self._found = []
        uuid = self._server['id']
        world = self._test.world
        after = self._test.footprint(self._server)
        self._must('R2', uuid not in world.ran_twice,
                   'the guest ran on two hosts')
        self._judge_jobs(uuid, after['nova'])
        host = self._home(after)
        if host is not None:
            self._judge_home(uuid, host, after)
            self._judge_leftovers(host, after)
            self._judge_usage(host)
        return self._found

    def _judge_jobs(self, uuid, says):
        busy = says.task_state or says.vm_state == 'error'
        for job in self._test.world.jobs_of(uuid):
            self._must('R1', not job.running or busy or
                       not self._unowned(job),
                       'a migration job runs behind an idle instance')
        for _, domain in self._test.world.domains(uuid):
            self._must('R1', not domain.block_jobs or busy,
                       'a block job runs behind an idle instance')

    def _home(self, after):
        """The one host that has the guest, or None."""
        hosts = [host for host, state in after['guest'].items()
                 if state == 'running']
        self._must('R2' if len(hosts) > 1 else 'R4', len(hosts) == 1,
                   'the guest is here: %s' % after['guest'])
        return hosts[0] if len(hosts) == 1 else None

    def _judge_home(self, uuid, host, after):
        self._must('R4', after['nova'].host == host,
                   'the guest is on %s, and Nova says %s' % (
                       host, after['nova'].host))
        self._must('R3', not self._before['disks'] or
                   after['disks'].get(host) == disks.COMPLETE,
                   'the guest on %s has this disk: %s' % (
                       host, after['disks']))
        domain = self._test.world.hypervisors[host].domains[uuid]
        self._must('R5', domain.persistent, 'the domain is transient')

    def _judge_leftovers(self, host, after):
        must = self._must
        must('R4', list(after['guest']) == [host],
             'another domain: %s' % after['guest'])
        must('R4', not after['open records'],
             'records that do not end: %s' % after['open records'])
        must('R4', not after['nova'].task_state,
             'the task state %s does not end' % after['nova'].task_state)
        must('R4', self._shared or list(after['disks']) in ([host], []),
             'another disk: %s' % after['disks'])
        must('R4', after['allocations'] == self._moved(
            self._before['allocations'], host),
            'allocations: %s' % after['allocations'])
        must('R4', not after["migrations' allocations"],
             "migrations' allocations: %s" % after["migrations' allocations"])
        must('R4', not after['migration context'], 'a migration context')
        for bindings in after['bindings'].values():
            must('R4', set(bindings) <= {host} and
                 set(bindings.values()) <= {'ACTIVE'},
                 'bindings of a port: %s' % bindings)
        for current, attachments in after.get('attachments', {}).values():
            must('R4', {current} == attachments,
                 'attachments of a volume: %s, and the mapping has %s' % (
                     sorted(attachments), current))
        for name in ('devices', 'pinned CPUs'):
            for where, found in after.get(name, {}).items():
                wanted = len(self._moved(
                    self._before.get(name, {}), host).get(where, ()))
                must('R6' if len(found) < wanted else 'R4',
                     len(found) == wanted,
                     '%s of %s: %s' % (name, where, found))
        must('R6', after['devices'].get(host, []) ==
             after.get("guest's devices", after['devices']).get(host, []),
             "the guest's devices %s, those claimed %s" % (
                 after.get("guest's devices"), after['devices']))

    @staticmethod
    def _moved(before, host):
        """The same things on the host that the guest is on now."""
        everything = [found for found in before.values() if found]
        return {host: everything[0]} if everything else {}

    def _judge_usage(self, home):
        for host, used in usage(self._test).items():
            wanted = (self._before['usage'].get(host)
                      if home == self._before['nova'].host else
                      self._before['usage'].get(
                          {home: self._before['nova'].host,
                           self._before['nova'].host: home}.get(host, host)))
            self._must('R6' if used < wanted else 'R4', used == wanted,
                       '%s counts vCPUs and MB %s, not %s' % (
                           host, used, wanted))


def usage(test):
    """{host: (vCPUs, MB)} that Nova's database says are in use."""
    ctxt = context.get_admin_context()
    nodes = [objects.ComputeNode.get_first_node_by_host_for_old_compat(
        ctxt, host) for host in test.world.hypervisors]
    return {node.host: (node.vcpus_used, node.memory_mb_used)
            for node in nodes}


def leftovers(test, server, migrations):
    """What is left of a server that was deleted: [Violation]."""
    found = []

    def must(condition, seen):
        if not condition:
            found.append(Violation('R4', 'after its deletion: %s' % (seen,)))
    uuid = server['id']
    must(not test.where(server), test.where(server))
    if test.OPERATION.IS_DRIVEN:
        must(not test.disks(server), test.disks(server))
    must(not test.ports(server), test.ports(server))
    for consumer in [uuid] + migrations:
        must(not test.allocations(consumer),
             'allocations %s' % test.allocations(consumer))
    for host in test.processes:
        devices = [owner for _, owner in test.devices(host).values() if owner]
        must(not devices, 'devices of %s: %s' % (host, devices))
        must(not test.OPERATION.DEVICES or not test.pinned_cpus(host),
             'pinned CPUs of %s' % host)
    if test.cinder is not None:
        for volume, attachments in test.cinder.volume_to_attachment.items():
            of_server = [
                name for name, attachment in attachments.items()
                if attachment['instance_uuid'] == uuid]
            must(not of_server, 'attachments of %s: %s' % (volume, of_server))
    for port in test.neutron._ports:
        bindings = releases.port_bindings(test.neutron, port)
        # to 22 the fixture keeps the active one of a port that is not bound
        must('INACTIVE' not in bindings.values(),
             'bindings of port %s: %s' % (port, bindings))
    for host, used in usage(test).items():
        must(used == test.empty[host], 'usage of %s: %s' % (host, used))
    if test.guard:
        for host in test.processes:
            must(not test.journaled(host), 'the journal of %s' % host)
    return found
