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

"""Why a command fails, and its exit status.

The numbers are documented in the manual page and never change their meaning.
0 is success; 2 is wrong usage, as argparse has it.
"""

OK = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
NO_RIGHTS = 4
LIBVIRT_AWAY = 5
REFUSED = 6
PENDING = 7


class CommandError(Exception):
    """A command fails.

    :cvar code: its exit status
    """
    code = FAILED


class NotFound(CommandError):
    """What was asked for is not there."""
    code = NOT_FOUND


class NoRights(CommandError):
    """The user may not read or write what the command needs."""
    code = NO_RIGHTS


class LibvirtAway(CommandError):
    """libvirt does not answer."""
    code = LIBVIRT_AWAY


class Refused(CommandError):
    """What was asked for would break a rule of the guard."""
    code = REFUSED


class Pending(CommandError):
    """It was written down, and nova-compute has not answered it yet."""
    code = PENDING
