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

from oslotest import base

from nova_migration_guard import pauses


class PausesTestCase(base.BaseTestCase):

    def setUp(self):
        super(PausesTestCase, self).setUp()
        self.pauses = pauses.Pauses(10, 300)

    def _up_to(self, seconds, pause):
        found = [pause() for _ in range(1000)]
        low = 1 - pauses.JITTER
        self.assertTrue(seconds * low <= min(found) <= seconds * 0.6)
        self.assertTrue(seconds * 0.9 <= max(found) <= seconds)

    def test_they_grow(self):
        for attempts, seconds in ((1, 10), (2, 20), (4, 80), (6, 300),
                                  (1000, 300)):
            self._up_to(seconds, lambda attempts=attempts:
                        self.pauses.after(attempts))

    def test_rounds(self):
        self._up_to(10, self.pauses.between_rounds)
