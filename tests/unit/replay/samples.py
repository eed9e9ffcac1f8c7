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

"""Records as scenarios write them, for tests of what draws them."""


def _event(t, actor, what, nova, **hosts):
    return {'t': t, 'actor': actor, 'what': what, 'nova': nova,
            'hosts': {name.replace('_', '-'): text
                      for name, text in hosts.items()}}


def _record(scenario, guard, verdict, events):
    return {'scenario': scenario, 'guard': guard, 'release': '34.0.0',
            'verdict': verdict, 'safe': verdict == 'SAFE', 'events': events}


def _first_steps():
    return [
        _event(8.0, 'user', 'creates a server on host-a',
               'ACTIVE on host-a',
               host_a='guest running; disk complete', host_b='', host_c=''),
        _event(8.9, 'operator', 'live-migrates the server to host-b',
               'ACTIVE/migrating on host-a; migration running -> host-b',
               host_a='guest running; job -> host-b 40 %; disk complete',
               host_b='guest paused; disk partial 40 %', host_c=''),
        _event(9.4, 'nova-compute on host-a', 'is killed (kill -9)',
               'ACTIVE/migrating on host-a; migration running -> host-b',
               host_a='nova-compute down; guest running; '
                      'job -> host-b 55 %; disk complete',
               host_b='guest paused; disk partial 40 %', host_c=''),
    ]


def restart_stock():
    last_steps = [
        _event(10.0, 'nova-compute on host-a', 'starts again',
               'ACTIVE on host-a; migration error -> host-b',
               host_a='guest running; job -> host-b 60 %; disk complete',
               host_b='guest paused; disk partial 60 %', host_c=''),
        _event(10.6, 'operator', 'live-migrates the server to host-c',
               'ACTIVE/migrating on host-a; migration error -> host-b; '
               'migration running -> host-c',
               host_a='guest running; job -> host-b 70 %; disk complete',
               host_b='guest paused; disk partial 70 %',
               host_c='disk empty base'),
        _event(11.1, 'libvirt', 'ends the copy; the guest runs on host-b',
               'ACTIVE/migrating on host-a; migration error -> host-b; '
               'migration running -> host-c',
               host_a='disk complete',
               host_b='guest running; disk complete',
               host_c='disk empty base'),
        _event(11.6, 'nova-compute on host-a',
               'takes it for the end of the migration to host-c',
               'ERROR on host-c; migration error -> host-b; '
               'migration running -> host-c',
               host_a='', host_b='guest running; disk complete',
               host_c='disk empty base'),
    ]
    return _record('restart-mid-migration', 'off', 'LOST DISK',
                   _first_steps() + last_steps)


def restart_guarded():
    last_steps = [
        _event(10.0, 'nova-compute on host-a', 'starts again',
               'ACTIVE/migrating on host-a; migration running -> host-b; '
               'held by the guard',
               host_a='guest running; job -> host-b 60 %; disk complete',
               host_b='guest paused; disk partial 60 %', host_c=''),
        _event(10.2, 'guard', 'aborts the job once more, and sees it gone',
               'ACTIVE on host-a; migration cancelled -> host-b',
               host_a='guest running; disk complete', host_b='', host_c=''),
        _event(11.6, 'operator', 'live-migrates the server to host-c',
               'ACTIVE on host-c; migration cancelled -> host-b; '
               'migration completed -> host-c',
               host_a='', host_b='', host_c='guest running; disk complete'),
    ]
    return _record('restart-mid-migration', 'on', 'SAFE',
                   _first_steps() + last_steps)


def race_stock():
    return _record('evacuation-race', 'off', 'VF GIVEN TWICE', [
        _event(0.0, 'operator', 'evacuates the server to host-b',
               'ACTIVE/rebuilding on host-a', host_a='nova-compute down',
               host_b='guest running; VF 0000:81:00.1 of first'),
        _event(0.4, 'nova-compute on host-b',
               'the audit frees the devices of the server',
               'ACTIVE on host-b', host_a='nova-compute down',
               host_b='guest running; VF 0000:81:00.1 of first'),
        _event(0.9, 'user', 'creates another server',
               'ACTIVE on host-b; second guest ACTIVE',
               host_a='nova-compute down',
               host_b='guest running; second guest running; '
                      'VF 0000:81:00.1 of first and second'),
    ])


def race_guarded():
    return _record('evacuation-race', 'on', 'SAFE', [
        _event(0.0, 'operator', 'evacuates the server to host-b',
               'ACTIVE/rebuilding on host-a', host_a='nova-compute down',
               host_b='guest running; VF 0000:81:00.1 of first'),
        _event(0.9, 'nova-compute on host-b',
               'the audit keeps the devices of the server',
               'ACTIVE on host-b', host_a='nova-compute down',
               host_b='guest running; VF 0000:81:00.1 of first'),
    ])
