# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Properties that hold with the guard, and are shown to fail without it.

A property is one test method. It runs twice: with the guard, where it must
hold, and on stock Nova, where it must fail, and in the way that is said. So
the second run proves that the first one tests something.
"""

import functools

from tests.functional import releases

#: Instead of a violation: stock Nova has the property too.
HOLDS = None


class Violation(AssertionError):
    """A property does not hold.

    :param name: which way it is broken, in a few words
    :param observed: what was seen
    """

    def __init__(self, name, observed):
        super(Violation, self).__init__('%s: %s' % (name, observed))
        self.name = name


def guarded(method):
    """Mark a test that runs with the guard only."""
    method.guard = True
    return method


def held(stock, since=()):
    """Mark a test method as a property.

    :param stock: the Violation's name that stock Nova must show, or HOLDS
    :param since: [(version, name or HOLDS, reason)], the oldest first: what
        stock Nova shows instead from that version on
    """
    def mark(method):
        method.stock_violation = stock
        for version, violation, reason in since:
            assert reason
            if version <= releases.VERSION:
                method.stock_violation = violation
        return method
    return mark


def twice(cls):
    """Class decorator: make two tests of each property."""
    for name, method in list(vars(cls).items()):
        if hasattr(method, 'stock_violation'):
            delattr(cls, name)
            setattr(cls, name + '_guarded', _with_guard(method))
            setattr(cls, name + '_stock', _stock(method))
    return cls


def _with_guard(method):
    @functools.wraps(method)
    def test(self):
        method(self)
    test.guard = True
    return test


def _stock(method):
    @functools.wraps(method)
    def test(self):
        expected = method.stock_violation
        try:
            method(self)
        except Violation as e:
            self.assertEqual(expected, e.name, str(e))
        else:
            self.assertIsNone(expected, 'stock Nova %s shows no "%s" here' %
                              (releases.RELEASE, expected))
    test.guard = False
    return test
