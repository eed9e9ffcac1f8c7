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

"""How the commands take instances and write times."""

import argparse
import datetime
import uuid


def instance(text):
    """An instance's UUID, as argparse reads it."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError('"%s" is no UUID' % text)


def moment(posix):
    """A time, in UTC.

    :param posix: POSIX time, or None
    """
    if posix is None:
        return ''
    return datetime.datetime.fromtimestamp(
        posix, datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')


def value(fact):
    """What an enumeration's member says, or a value."""
    return getattr(fact, 'value', fact)
