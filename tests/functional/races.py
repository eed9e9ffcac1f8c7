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

"""Bring two things that Nova does into one order, always the same."""

import threading

import fixtures

from nova import objects

from tests.functional import releases
from tests.functional import waiting


class AuditAcrossArrival(fixtures.Fixture):
    """A resource audit that sleeps over an arrival.

    It reads the instances of its host, then waits until one more has arrived,
    and then reads the migrations.

    :param test: the :class:`~tests.functional.cloud.CloudTestCase`
    :param host: the audited host, where the instance arrives
    :param arrived: tells whether instance and migration are written down
    :param patience: seconds after which it goes on all the same. Few will do
        where the arrival waits for the audit's lock.
    """

    def __init__(self, test, host, arrived, patience=waiting.TIMEOUT):
        super(AuditAcrossArrival, self).__init__()
        self._test = test
        self._host = host
        self._arrived = arrived
        self._patience = patience
        #: whether it has been started
        self.begun = False
        self._has_read = False
        self._thread = None
        #: whether the instance arrived between the two reads
        self.between = False

    def _setUp(self):
        for name in releases.audit_reads_of_migrations(objects.MigrationList):
            self._wrap(name)

    def _wrap(self, name):
        original = getattr(objects.MigrationList, name)

        def read(context, host, node):
            if self.begun and host == self._host and not self._has_read:
                self._has_read = True
                self._wait_for_arrival()
            return original(context, host, node)
        # a classmethod: what replaces it gets no class
        self.useFixture(fixtures.MockPatchObject(
            objects.MigrationList, name, read))

    def _wait_for_arrival(self):
        try:
            waiting.wait_until(self._arrived, 'the arrival', self._patience)
        except waiting.WaitTimeout:
            return
        self.between = True

    def begin(self):
        """Start the audit, and return when it has read the instances."""
        if self.begun:
            return
        self.begun = True
        self._thread = threading.Thread(
            target=self._test.audit, args=(self._host,))
        self._thread.daemon = True
        self._thread.start()
        waiting.wait_until(lambda: self._has_read,
                           'the audit has read the instances')

    def end(self):
        """Wait for the audit's end."""
        waiting.wait_until(lambda: not self._thread.is_alive(),
                           'the end of the audit')


class _Call(fixtures.Fixture):
    """Call something each time that a method of Nova is called.

    :param owner: the class
    :param name: the method's name
    :param function: called with the method's ``self``, in its thread
    """

    def __init__(self, owner, name, function):
        super(_Call, self).__init__()
        self._owner = owner
        self._name = name
        self._function = function

    def _setUp(self):
        original = getattr(self._owner, self._name)

        # Nova's methods have a parameter named instance
        def method(method_self, *args, **kwargs):
            return self._run(original, method_self, *args, **kwargs)
        self.useFixture(fixtures.MockPatchObject(
            self._owner, self._name, method))


class CallBefore(_Call):
    """Call something each time before a method of Nova runs."""

    def _run(self, original, method_self, *args, **kwargs):
        self._function(method_self)
        return original(method_self, *args, **kwargs)


class CallAfter(_Call):
    """Call something each time that a method of Nova has returned."""

    def _run(self, original, method_self, *args, **kwargs):
        result = original(method_self, *args, **kwargs)
        self._function(method_self)
        return result
