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

"""The scenarios that ``tools/replay`` knows, by name.

This is the one table of names. It needs nothing but the standard library,
because ``tools/replay`` reads it with the system's Python, before there is a
virtualenv with Nova. The code that plays a scenario is
``tests.replay.scenarios``, or ``tests.replay.on_lab`` on the lab; the test
that runs it in a process of its own is named here.
"""

import collections

#: name: as in ``--scenario NAME``; title: a short heading; report: where the
#: case was reported; story: what is about to be seen, for a reader who knows
#: only the report; lab: whether it can be played on the lab.
Scenario = collections.namedtuple(
    'Scenario', ['name', 'title', 'report', 'story', 'test', 'lab'],
    defaults=[False])

_TESTS = 'tests.replay.test_scenarios.ScenarioTestCase.'

_ALL = [
    Scenario(
        'restart-mid-migration',
        'nova-compute restarts in mid block migration',
        'https://bugs.launchpad.net/nova/+bug/1753676',
        'A server with local disks migrates from host-a to host-b. '
        'nova-compute on host-a dies and starts again while libvirt still '
        'copies. Then the operator migrates the server once more.',
        _TESTS + 'test_restart_mid_migration', lab=True),
    Scenario(
        'evacuation-race',
        'the resource audit races an evacuation',
        'https://bugs.launchpad.net/nova/+bug/1896463',
        'Twenty servers with three SR-IOV ports each arrive on host-b: by '
        'evacuation where the release still has that race, or else by live '
        'migration, which races in the same way. The resource audit of '
        'host-b reads the list of instances just before the arrivals are '
        'saved, and the list of migrations just after.',
        _TESTS + 'test_evacuation_race'),
    Scenario(
        'completed-while-down',
        'the migration completes while nova-compute is down',
        'https://bugs.launchpad.net/nova/+bug/1753676',
        'nova-compute on host-a dies in mid migration and libvirt brings the '
        'migration to its end. When nova-compute starts again, the guest '
        'runs on host-b and Nova still looks for it on host-a.',
        _TESTS + 'test_completed_while_down', lab=True),
]

SCENARIOS = collections.OrderedDict((item.name, item) for item in _ALL)

#: What each verdict means, in one sentence.
VERDICTS = {
    'LOST DISK': 'Nova deleted the last complete disk that it knew of.',
    'TWO QEMUS': 'the guest runs twice, on disks that drift apart.',
    'LEFT BEHIND': 'the migration is over, and what it took is still taken.',
    'VF GIVEN TWICE': 'two guests hold one SR-IOV virtual function.',
    'SAFE': 'nothing is lost, nothing runs twice, nothing is given twice.',
}


def names():
    """Return the names of all scenarios, in the order they are played."""
    return list(SCENARIOS)


def known(name):
    """Return the Scenario, or a plain one for a name that is not listed.

    Records are also read from files, which may come from a newer checkout.
    """
    return SCENARIOS.get(name) or Scenario(name, name, '', '', '')


def meaning(verdict):
    """Return what a verdict means, or '' for one that is not in the table."""
    return VERDICTS.get(verdict, '')
