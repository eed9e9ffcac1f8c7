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

"""The patch set: one module a class of Nova, each a thin layer.

Applied once for the life of the process and never undone: each wrapper asks
the options when it is called. A module of this package is imported only when
it is applied, because it imports the part of Nova that it patches. It names
the module of Nova in MODULE, and in PATCHES the wrapper of each function;
in PATCHES_WHERE_THERE of those that some releases lack.
"""

import importlib
import typing

import wrapt

_MODULES = ('compute_manager', 'libvirt_destination', 'libvirt_driver',
            'pci_manager', 'resource_tracker')
_applied: typing.List[str] = []


def applied():
    """The names of the functions that are patched in this process."""
    return tuple(_applied)


def _patches_of(module):
    patched = importlib.import_module(module.MODULE)
    yield from module.PATCHES.items()
    for name, wrapper in getattr(module, 'PATCHES_WHERE_THERE', {}).items():
        owner, _, function = name.partition('.')
        if function in vars(getattr(patched, owner)):
            yield name, wrapper


def apply():
    """Patch Nova. A second call changes nothing.

    :returns: the names of the functions that are patched
    """
    if not _applied:
        for name in _MODULES:
            module = importlib.import_module('%s.%s' % (__name__, name))
            for function, wrapper in _patches_of(module):
                wrapt.wrap_function_wrapper(module.MODULE, function, wrapper)
                _applied.append(function)
    return applied()
