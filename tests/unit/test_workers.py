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

import threading

from oslotest import base

from nova_migration_guard import workers

# Long enough for a thread to run, short enough for a test.
SOON = 5
AT_ONCE = 0.05


class WorkersTestCase(base.BaseTestCase):

    def setUp(self):
        super(WorkersTestCase, self).setUp()
        self.release = threading.Event()
        self.addCleanup(self.release.set)

    def hang(self, *args):
        self.release.wait(60)
        return 'late'

    def test_result_and_error(self):
        pool = workers.Workers(1)
        self.assertEqual(3, pool.call('a', SOON, lambda x, y: x + y, 1, 2))
        self.assertRaises(KeyError, pool.call, 'a', SOON, {}.__getitem__, 1)

    def test_call_that_hangs(self):
        pool = workers.Workers(2)
        self.assertRaises(workers.CallTimeout, pool.call, 'a', AT_ONCE,
                          self.hang)
        # no second call about the same domain while the first one hangs
        error = self.assertRaises(workers.CallTimeout, pool.call, 'a', SOON,
                                  self.fail, 'called')
        self.assertIn('an earlier call', str(error))
        self.assertEqual('b', pool.call('b', SOON, str, 'b'))

    def test_worker_comes_back_when_its_call_returns(self):
        pool = workers.Workers(1)
        self.assertRaises(workers.CallTimeout, pool.call, 'a', AT_ONCE,
                          self.hang)
        error = self.assertRaises(workers.CallTimeout, pool.call, 'b',
                                  AT_ONCE, self.fail, 'called')
        self.assertIn('every worker', str(error))
        self.release.set()
        self.assertEqual('b', pool.call('b', SOON, str, 'b'))
        self.assertEqual('a', pool.call('a', SOON, str, 'a'))

    def test_each_side_by_side(self):
        pool = workers.Workers(3)
        meeting = threading.Barrier(3)
        results, errors = pool.call_each(
            'abc', SOON, SOON, lambda key: meeting.wait(SOON) is not None)
        self.assertEqual({'a': True, 'b': True, 'c': True}, results)
        self.assertEqual({}, errors)

    def test_one_that_hangs_among_many(self):
        pool = workers.Workers(2)

        def ask(key):
            return self.hang() if key == 7 else key
        results, errors = pool.call_each(range(100), 0.5, SOON, ask)
        self.assertEqual(99, len(results))
        self.assertEqual([7], list(errors))
        self.assertIsInstance(errors[7], workers.CallTimeout)

    def test_errors_are_kept_apart(self):
        pool = workers.Workers(2)
        results, errors = pool.call_each(
            (1, 0), SOON, SOON, lambda number: 1 / number)
        self.assertEqual({1: 1.0}, results)
        self.assertIsInstance(errors[0], ZeroDivisionError)

    def test_budget_bounds_all_of_them(self):
        pool = workers.Workers(1)
        results, errors = pool.call_each('abc', SOON, AT_ONCE, self.hang)
        self.assertEqual({}, results)
        self.assertEqual({'a', 'b', 'c'}, set(errors))
