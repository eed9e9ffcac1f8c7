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


"""What tests on the lab have in common."""

import atexit
import os

import fixtures
import testtools
from testtools import content
from testtools import testcase

from tests.lab import lab
from tests.lab import progress
from tests.lab import settings as lab_settings

OPTIONS = lab_settings.QUICK_OPTIONS
LIGHT = lab_settings.LIGHT
FULL = lab_settings.FULL
#: Of the servers of tests.
NAME = 'tested'
#: Seconds for one test; the first one brings the lab up.
TIMEOUT = 1800

_labs = []


def in_ci(form):
    """Decorate a test that CI runs on the lab of one form.

    The name of the test then ends with ``[ci-FORM]``, by which
    ``tools/run-tests`` finds it. The other tests are run on demand.

    :param form: LIGHT or FULL
    """
    return testcase.attr('ci-' + form)


def shared_lab():
    """The lab of this test run.

    It is brought up by the first test, unless it is up already, and taken
    down at the end by whoever brought it up. ``NOVA_LAB_RELEASE``,
    ``NOVA_LAB_FORM``, ``NOVA_LAB_ROOT`` and ``NOVA_LAB_VIRT_TYPE`` say what
    it is.
    """
    if not _labs:
        found, brought_up = lab.connect(
            lab_settings.Settings.from_environ(compute_options=OPTIONS))
        if brought_up:
            atexit.register(found.parts.down)
        else:
            found.mend()
            for server in found.servers(NAME):
                progress.say('%s is left from an interrupted run' % server)
                found.forget(server)
        _labs.append(found)
    return _labs[0]


class LabTestCase(testcase.WithAttributes, testtools.TestCase):
    """A test with a lab of which every part runs when it begins.

    :cvar guard: whether nova-compute has the guard
    :cvar options: {section: {option: value}}, more for nova-compute
    :cvar full: whether it needs ports and volumes, which servers have in the
        full form of the lab only
    """

    guard = True
    options = OPTIONS
    full = False

    def setUp(self):
        super(LabTestCase, self).setUp()
        self.useFixture(fixtures.Timeout(int(
            os.environ.get('OS_TEST_TIMEOUT') or TIMEOUT), gentle=True))
        transcript = progress.Transcript()
        transcript.__enter__()
        self.addCleanup(transcript.__exit__, None, None, None)
        self.addDetail('transcript', content.Content(
            content.UTF8_TEXT, lambda: [transcript.text().encode()]))
        progress.say('=== ' + self.id())
        self.lab = shared_lab()
        if self.full and not self.lab.parts.full:
            self.skipTest('servers have ports and volumes in the full form of '
                          'the lab only: NOVA_LAB_FORM=full')
        self.addOnException(self._say_where_the_logs_are)
        self.addCleanup(self.lab.mend)
        self.lab.configure_computes(self.guard, self.options)

    def _say_where_the_logs_are(self, exc_info):
        progress.say('FAILED: %s; logs: %s' % (
            str(exc_info[1]).partition('\n')[0], os.path.realpath(
                str(self.lab.parts.settings.logs))))

    def boot(self, host, volume=False):
        """Boot a server that is gone, with its traces, after the test.

        :param volume: whether it has a volume; in the full form only
        """
        server = self.lab.boot(host, NAME)
        self.addCleanup(self._forget, server)
        if volume:
            self.lab.attach_volume(server)
        return server

    def _forget(self, server):
        self.lab.mend()
        self.lab.forget(server)
