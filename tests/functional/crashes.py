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

import inspect

import fixtures

from tests.functional import process
from tests.functional import waiting


class StopAt(fixtures.Fixture):
    """Stop a host's nova-compute at a call, the first time that it is made.

    What made the call goes no further: until the process is killed, and then
    never.

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
        #: whether the call was made
        self.reached = False

    def _setUp(self):
        original = getattr(self._owner, self._name)

        def method(method_self, *args, **kwargs):
            compute = process.of_object(method_self) or process.of_caller()
            stops = (compute is not None and compute.host == self._host and
                     not self.reached)
            if not stops:
                return original(method_self, *args, **kwargs)
            self.reached = True
            if self._after:
                original(method_self, *args, **kwargs)
            self._world.wait_for(lambda: not compute.alive,
                                 'nova-compute is killed')
            compute.live_or_hang()
        self.useFixture(fixtures.MockPatchObject(
            self._owner, self._name, method))

    def wait(self):
        """Wait until the process has stopped there."""
        waiting.wait_until(lambda: self.reached, '%s.%s is called' % (
            self._owner.__name__, self._name))


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
            self._wrap(owner, name, getattr(owner, name))

    def _wrap(self, owner, name, original):
        def method(*args, **kwargs):
            if self._is_away:
                raise self._error
            return original(*args, **kwargs)
        # Nova's fixtures put functions there that want no self
        without_self = inspect.ismethod(original) or isinstance(
            inspect.getattr_static(owner, name), staticmethod)
        self.useFixture(fixtures.MockPatchObject(
            owner, name, staticmethod(method) if without_self else method))

    def come_back(self):
        """Let it answer again."""
        self._is_away = False
