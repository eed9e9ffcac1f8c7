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

"""Says where Nova's picture and what the hosts do part ways.

It reads the sentences that scenarios write: 'ACTIVE/migrating on host-a' of
Nova, 'guest running' and 'job -> host-b 40 %' of a host. What it does not
understand it passes over: no finding is better than a wrong one.
"""

import collections
import re

from tests.replay import timeline

#: What Nova says of the instance: vm_state, task_state or None, host.
Instance = collections.namedtuple('Instance', ['vm', 'task', 'host'])

_INSTANCE = re.compile(r'^([A-Z_]+)(?:/(\S+))? on (\S+)$')
_JOB = re.compile(r'^job -> (\S+)')
_FREE = re.compile(r'^(VF|PCI|mdev) (\S+) on (\S+) available$')
_BOTH = re.compile(r'^(VF|PCI|mdev)\b.* (\S+) and (\S+)$')


def instance(statements):
    """Return the Instance that Nova speaks of, or None."""
    for text in statements:
        found = _INSTANCE.match(text)
        if found:
            return Instance(*found.groups())
    return None


def _jobs(row):
    """Yield (source, destination) of each job that libvirt runs."""
    for host, statements in row.cells.items():
        for text in statements:
            found = _JOB.match(text)
            if found and host != timeline.NOVA:
                yield host, found.group(1)


def wrong(row):
    """Return what is wrong after an event, as sentences."""
    out = []
    server = instance(row.cells[timeline.NOVA])
    running = [host for host, statements in row.cells.items()
               if 'guest running' in statements]
    jobs = list(_jobs(row))
    if len(running) > 1:
        out.append('the guest runs on %s' % ' and on '.join(running))
    if server and not server.task:
        out.extend('Nova knows of no migration; %s still copies to %s' % job
                   for job in jobs)
        if len(running) == 1 and running[0] != server.host:
            out.append('Nova looks for the guest on %s; it runs on %s'
                       % (server.host, running[0]))
    elif server:
        asked = _asked(row)
        out.extend('Nova migrates to %s; %s copies to %s'
                   % (asked, source, target) for source, target in jobs
                   if asked and asked != target)
    out.extend(_free_in_use(row))
    for host, statements in row.cells.items():
        for text in statements:
            found = _BOTH.match(text)
            if found:
                out.append('the %s and the %s guest on %s have the same %s'
                           % (found.group(2), found.group(3), host,
                              found.group(1)))
    return out


def _free_in_use(row):
    """Yield a sentence for each device that Nova calls free and is not."""
    for text in row.cells[timeline.NOVA]:
        found = _FREE.match(text)
        if not found:
            continue
        kind, address, host = found.groups()
        used = '%s %s of ' % (kind, address)
        for statement in row.cells.get(host, ()):
            if statement.startswith(used):
                yield ('Nova calls %s %s free; the %s guest on %s has it'
                       % (kind, address, statement[len(used):], host))


def _asked(row):
    """Return the host to which Nova says that it migrates, or None."""
    for text in row.cells[timeline.NOVA]:
        found = re.match(r'^migration (?:running|preparing|queued) -> (\S+)',
                         text)
        if found:
            return found.group(1)
    return None
