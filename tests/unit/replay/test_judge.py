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

import ddt
import testtools

from tests.replay import judge
from tests.replay import timeline
from tests.unit.replay import samples


def _wrong(nova, **hosts):
    record = samples.restart_stock()
    record['events'] = [{
        't': 0, 'actor': 'a', 'what': 'b', 'nova': nova,
        'hosts': {name.replace('_', '-'): text
                  for name, text in hosts.items()}}]
    return judge.wrong(timeline.from_dict(record).rows()[0])


@ddt.ddt
class WrongTestCase(testtools.TestCase):

    @ddt.data(
        ('ACTIVE on host-a', 'guest running', 'no guest'),
        ('ACTIVE/migrating on host-a; migration running -> host-b',
         'guest running; job -> host-b 4 %', 'guest paused'),
        # the guest has switched over, Nova has not finished
        ('ACTIVE/migrating on host-a; migration running -> host-b',
         'no guest', 'guest running'),
        ('not a sentence that is known', 'guest running', 'guest off'),
        ('ACTIVE on host-a', '', ''),
    )
    @ddt.unpack
    def test_nothing_is_wrong(self, nova, host_a, host_b):
        self.assertEqual([], _wrong(nova, host_a=host_a, host_b=host_b))

    def test_job_behind_an_idle_server(self):
        self.assertEqual(
            ['Nova knows of no migration; host-a still copies to host-b'],
            _wrong('ACTIVE on host-a',
                   host_a='guest running; job -> host-b 4 %'))

    def test_job_to_another_host_than_nova_says(self):
        self.assertEqual(
            ['Nova migrates to host-c; host-a copies to host-b'],
            _wrong('ACTIVE/migrating on host-a; migration running -> host-c',
                   host_a='guest running; job -> host-b 4 %'))

    def test_guest_elsewhere(self):
        self.assertEqual(
            ['Nova looks for the guest on host-a; it runs on host-b'],
            _wrong('ACTIVE on host-a', host_a='no guest',
                   host_b='guest running'))

    def test_two_guests(self):
        self.assertEqual(
            ['the guest runs on host-a and on host-b'],
            _wrong('ACTIVE on host-a', host_a='guest running',
                   host_b='guest running'))

    def test_device_that_nova_calls_free_is_in_use(self):
        free = 'ACTIVE on host-b; VF 0000:81:00.1 on host-b available'
        used = 'guest running; VF 0000:81:00.1 of first'
        self.assertEqual(
            ['Nova calls VF 0000:81:00.1 free; the first guest on host-b '
             'has it'], _wrong(free, host_b=used))
        self.assertEqual([], _wrong(free, host_b='guest running'))
        self.assertEqual([], _wrong(free.replace('available', 'allocated'),
                                    host_b=used))
        # the one of another host
        self.assertEqual([], _wrong('ACTIVE on host-a; VF 0000:81:00.1 on '
                                    'host-b available', host_a=used))

    def test_one_device_of_two_guests(self):
        rows = timeline.from_dict(samples.race_stock()).rows()
        self.assertEqual(
            ['the first and the second guest on host-b have the same VF'],
            judge.wrong(rows[2]))
