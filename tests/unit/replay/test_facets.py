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

from tests.replay import facets


@ddt.ddt
class FacetTestCase(testtools.TestCase):

    @ddt.data(
        ('guest running', ('guest', 'running', 'full')),
        ('guest paused', ('guest', 'paused', 'half')),
        ('second guest running', ('second guest', 'running', 'full')),
        ('disk partial 40 %', ('disk', 'partial 40 %', 'half')),
        ('second disk complete', ('second disk', 'complete', 'full')),
        ('no disk', ('disk', '', 'none')),
        ('job -> host-b 40 %', ('job', '-> host-b 40 %', 'busy')),
        ('VF 0000:81:00.1 of first',
         ('VF 0000:81:00.1', 'of first', 'full')),
        ('VF 0000:81:00.1 of first and second',
         ('VF 0000:81:00.1', 'of first and second', 'bad')),
        ('nova-compute down', ('nova-compute', 'down', 'plain')),
        ('something', ('something', '', 'plain')),
    )
    @ddt.unpack
    def test_facet(self, statement, expected):
        self.assertEqual(expected, facets.facet(statement))

    def test_job(self):
        self.assertEqual(('host-b', '40 %'),
                         facets.job('job -> host-b 40 %'))
        self.assertEqual(('host-b', ''), facets.job('job -> host-b'))
        self.assertIsNone(facets.job('guest running'))

    def test_gone(self):
        self.assertEqual(
            ['nova-compute up', 'no guest', 'no job', 'no second disk',
             'VF 0000:81:00.1 not in use'],
            facets.gone(['nova-compute down', 'guest running',
                         'job -> host-b 40 %', 'disk complete',
                         'second disk complete', 'VF 0000:81:00.1 of first'],
                        ['disk partial 3 %']))

    def test_nothing_is_gone(self):
        self.assertEqual([], facets.gone([], ['guest running']))
        self.assertEqual([], facets.gone(['guest paused'],
                                         ['guest running']))
