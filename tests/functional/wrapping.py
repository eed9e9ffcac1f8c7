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

"""Methods of Nova that are wrapped, whatever stands in their place."""

import inspect


class Wrapped(object):
    """A method of a class, wrapped.

    What Nova's fixtures have put there in its place, a function or a mock, is
    bound as Python would bind it, or not at all.

    :param owner: the class
    :param name: the method's name
    :param wrapper: called with the call to make, without arguments, the
        object whose method it is, and the arguments
    """

    def __init__(self, owner, name, wrapper):
        self._original = inspect.getattr_static(owner, name)
        self._wrapper = wrapper

    def __get__(self, instance, owner=None):
        bound = self._original
        if hasattr(type(bound), '__get__'):
            bound = bound.__get__(instance, owner)

        def method(*args, **kwargs):
            return self._wrapper(lambda: bound(*args, **kwargs), instance,
                                 *args)
        return method
