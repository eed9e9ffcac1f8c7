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

"""A nova-compute that stops at a certain call, to be killed there."""

import fixtures

from tests.functional import process
from tests.functional import waiting
from tests.functional import wrapping


class StopAt(fixtures.Fixture):
    """Stop a host's nova-compute at a call, the first time that it is made.

    What made the call goes no further: until :meth:`go_on`, or until the
    process is killed, and then never.

    :param world: the :class:`~tests.functional.hypervisor.World`
    :param host: the host's name
    :param owner: the class whose method it is
    :param name: the method's name
    :param after: whether it stops when the call has taken effect, and not
        before
    """

    def __init__(self, world, host, owner, name, after=False):
        super(StopAt, self).__init__()
        self._world = world
        self._host = host
        self._owner = owner
        self._name = name
        self._after = after
        self._is_called = False
        self._goes_on = False
        #: whether the process has stopped there
        self.reached = False

    def _setUp(self):
        self.useFixture(fixtures.MockPatchObject(
            self._owner, self._name, wrapping.Wrapped(
                self._owner, self._name, self._call)))

    def _call(self, call, method_self, *args):
        compute = process.of_object(method_self) or process.of_caller()
        if compute is None or compute.host != self._host or self._is_called:
            return call()
        self._is_called = True
        result = call() if self._after else None
        self.reached = True
        self._world.wait_for(lambda: self._goes_on or not compute.alive,
                             'nova-compute is killed')
        compute.live_or_hang()
        return result if self._after else call()

    def go_on(self):
        """Let the process go on."""
        self._goes_on = True

    def wait(self):
        """Wait until the process has stopped there."""
        waiting.wait_until(lambda: self.reached, '%s.%s is called' % (
            self._owner.__name__, self._name))


class LateCall(fixtures.Fixture):
    """A call that arrives when the test says so.

    :param owner: the class whose method it is
    :param name: the method's name
    """

    def __init__(self, owner, name):
        super(LateCall, self).__init__()
        self._owner = owner
        self._name = name
        self._waiting = []
        self._is_late = True

    def _setUp(self):
        self._original = getattr(self._owner, self._name)

        def method(*args, **kwargs):
            if self._is_late:
                self._waiting.append((args, kwargs))
            else:
                self._original(*args, **kwargs)
        self.useFixture(fixtures.MockPatchObject(
            self._owner, self._name, method))

    def wait(self):
        """Wait until the call was made."""
        waiting.wait_until(lambda: self._waiting, '%s is called' % self._name)

    def let_others_pass(self):
        """Make every further call at once."""
        self._is_late = False

    def arrive(self):
        """Make it."""
        self.let_others_pass()
        for args, kwargs in self._waiting:
            self._original(*args, **kwargs)


class Away(fixtures.Fixture):
    """A service that does not answer some of its clients' methods.

    :param error: what they raise
    :param methods: pairs of a class and a method's name
    """

    def __init__(self, error, *methods):
        super(Away, self).__init__()
        self._error = error
        self._methods = methods
        self._is_away = True

    def _setUp(self):
        for owner, name in self._methods:
            self.useFixture(fixtures.MockPatchObject(
                owner, name, wrapping.Wrapped(owner, name, self._call)))

    def _call(self, call, *args):
        if self._is_away:
            raise self._error
        return call()

    def come_back(self):
        """Let it answer again."""
        self._is_away = False
