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

"""Unit tests of the claims of mediated devices that outlive their process."""

import os
import stat
from unittest import mock

import fixtures
from oslotest import base

from nova_migration_guard import durable
from nova_migration_guard import mdev_claims

GUEST = 'c4a0e5f5-8b1c-4f4c-9f3e-5d7b7e1f0a01'
OTHER = 'c4a0e5f5-8b1c-4f4c-9f3e-5d7b7e1f0a02'
MDEV = '0a5c6a0e-1b0e-4e4e-8c3e-2f1d6a1b0c01'


class Refused(Exception):
    def __init__(self, reason):
        super(Refused, self).__init__(reason)


class FakeDriver(object):
    def __init__(self):
        self.instance_claimed_mdevs = {}


class MdevClaimsTestCase(base.BaseTestCase):

    def setUp(self):
        super(MdevClaimsTestCase, self).setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.log = self.useFixture(fixtures.FakeLogger())
        self.path = os.path.join(self.folder, 'host%2Fa', 'claimed-mdevs')

    def _claims(self, refusal=None, host='host/a'):
        return mdev_claims.MdevClaims(self.folder, host, refusal)

    def _restored(self):
        claims = self._claims()
        self.assertEqual(claims.restore(), claims)
        return dict(claims)

    def test_nothing_is_written_before_there_is_a_claim(self):
        self.assertEqual({}, self._restored())
        self.assertFalse(os.path.exists(self.path))

    def test_claims_outlive_their_process(self):
        claims = self._claims()
        claims[GUEST] = [MDEV]
        claims[OTHER] = []
        self.assertEqual({GUEST: [MDEV], OTHER: []}, self._restored())
        self.assertEqual(0o600, stat.S_IMODE(os.stat(self.path).st_mode))

    def test_end_of_a_claim_does_too(self):
        claims = self._claims()
        claims[GUEST] = [MDEV]
        self.assertEqual([MDEV], claims.pop(GUEST, None))
        self.assertIsNone(claims.pop(GUEST, None))
        self.assertRaises(KeyError, claims.pop, GUEST)
        self.assertEqual({}, self._restored())

    def test_claims_of_another_host_are_not_trusted(self):
        claims = self._claims(host='host-b')
        claims[GUEST] = [MDEV]
        os.rename(os.path.join(self.folder, 'host-b'),
                  os.path.dirname(self.path))
        self.assertEqual({}, self._restored())
        self.assertIn('it is of host host-b', self.log.output)
        self.assertTrue(os.path.exists(self.path + '.rejected'))

    def test_what_is_no_claim_is_set_aside(self):
        os.makedirs(os.path.dirname(self.path))
        for number, text in enumerate((
                'half a fi', '[]', '{"version": 2, "host": "host/a"}',
                '{"version": 1, "host": "host/a", "claims": {"x": "y"}}')):
            with open(self.path, 'w') as stream:
                stream.write(text)
            self.assertEqual({}, self._restored())
            self.assertEqual(
                number + 1, len(os.listdir(os.path.dirname(self.path))))

    def test_file_that_cannot_be_read(self):
        os.makedirs(self.path)
        self.assertEqual({}, self._restored())
        self.assertIn('cannot be read', self.log.output)

    def test_claim_that_cannot_be_written_is_refused(self):
        claims = self._claims(Refused)
        with mock.patch.object(durable, 'write',
                               side_effect=OSError(28, 'disk full')):
            error = self.assertRaises(
                Refused, claims.__setitem__, GUEST, [MDEV])
        self.assertIn('disk full', str(error))
        self.assertEqual({}, claims)

    def test_or_warned_of(self):
        claims = self._claims()
        with mock.patch.object(durable, 'write',
                               side_effect=OSError(28, 'disk full')):
            claims[GUEST] = [MDEV]
            self.assertEqual({GUEST: [MDEV]}, claims)
            self.assertEqual([MDEV], claims.pop(GUEST))
        self.assertEqual(2, self.log.output.count('disk full'))

    def test_driver_gets_what_was_claimed(self):
        self._claims()[GUEST] = [MDEV]
        driver = FakeDriver()
        mdev_claims.keep(driver, self.folder, 'host/a', None, False)
        self.assertEqual({GUEST: [MDEV]}, driver.instance_claimed_mdevs)
        self.assertIn('is kept', self.log.output)

    def test_report_only_reports(self):
        self._claims()[GUEST] = [MDEV]
        driver = FakeDriver()
        mdev_claims.keep(driver, self.folder, 'host/a', None, True)
        self.assertIs(dict, type(driver.instance_claimed_mdevs))
        self.assertEqual({}, driver.instance_claimed_mdevs)
        self.assertIn('would be kept', self.log.output)

    def test_older_drivers_claim_none(self):
        driver = object()
        mdev_claims.keep(driver, self.folder, 'host/a', None, False)
        self.assertIsNone(mdev_claims.of_driver(driver))
