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

"""What each way to lose nova-compute in mid migration leaves behind.

These are the rows of the table in doc/source/contributor/lab.rst.
"""

import re

from testtools import matchers

from tests.lab import base
from tests.lab import survey
from tests.lab import variants

#: What stock Nova leaves in nearly all of them: all that B was given. Numbers
#: of migrations and of MiB are N here.
STAYS = [
    'the instance holds nothing of host-a',
    'instance holds resources of host-b',
    'migration N holds resources of host-a',
    'INACTIVE binding for host-b',
    'binding for host-a says migrating_to host-b',
    'attachment for host-b, the one that Nova knows',
    'Nova knows no attachment for host-a',
    'files of N MiB on host-b',
    'a tap on host-b',
]
#: Where the guest has arrived on B, Nova believes it on A besides.
NOT_FOUND = [
    'the guest runs on host-b, Nova says host-a',
    'no domain on host-a',
    'a domain on host-b, running',
]
STOCK = dict.fromkeys(variants.VARIANTS, STAYS)
STOCK['ended-while-down'] = STAYS + NOT_FOUND
#: What is left depends on whether A had asked B to take over: either the guest
#: is where Nova does not look for it, or A's record never ends.
IN_POST_MIGRATION = 'killed-after-switch-over'


class VariantTestCase(base.LabTestCase):
    """Plays a variant: the restart, and a request for the other host."""

    full = True

    def play(self, variant):
        moments = survey.play(self.lab, variant, self.guard)
        self.assertEqual(2, len(moments), moments)
        return moments


class GuardedTestCase(VariantTestCase):
    """With the guard, nothing is left, and the next request completes."""

    guard = True

    def check(self, variant):
        restart, request = self.play(variant)
        self.assertEqual([], restart[1])
        self.assertThat(request[0], matchers.EndsWith(': completed'))
        self.assertEqual([], request[1])


class StockTestCase(VariantTestCase):
    """Without the guard, much is left, and the next request fails."""

    guard = False

    def check(self, variant):
        restart, request = self.play(variant)
        left = sorted(re.sub(r'\d+', 'N', text) for text in restart[1])
        if variant.name == IN_POST_MIGRATION:
            self.assertIn('migration N holds resources of host-a', left)
            self.assertNotEqual(NOT_FOUND[0] in left,
                                'migration N: running' in left, left)
            return
        self.assertEqual(sorted(STOCK[variant.name]), left)
        self.assertThat(request[0], matchers.EndsWith(': error'))


def _add_tests(case):
    for variant in variants.VARIANTS.values():
        def test(self, variant=variant):
            self.check(variant)
        name = 'test_' + variant.name.replace('-', '_')
        test.__name__ = name
        test.__doc__ = variant.title
        setattr(case, name, test)


_add_tests(GuardedTestCase)
_add_tests(StockTestCase)
