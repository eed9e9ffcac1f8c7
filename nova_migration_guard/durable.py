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

"""Files that are there as a whole or not at all, whatever crashes."""

import os
import time
from urllib import parse


def folder_of(parent, host):
    """The path of one host's folder.

    :param parent: ``[migration_guard] journal_dir``
    :param host: the host's name, as Nova's records have it; it may be
        anything for Nova that is no path separator
    """
    return os.path.join(parent, parse.quote(host, safe=''))


def make_folder(path):
    """Make a folder for its owner only.

    :raises OSError: when it cannot be made
    """
    os.makedirs(path, mode=0o700, exist_ok=True)
    if os.stat(path).st_mode & 0o077:
        os.chmod(path, 0o700)


def sync_folder(path):
    """Make durable what was renamed or removed in a folder.

    :raises OSError: when it cannot be done
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path, text):
    """Write a file for its owner only; what was there stays until it is done.

    :raises OSError: when it cannot be written durably
    """
    temporary = path + '.new'
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, 'w') as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.rename(temporary, path)
    sync_folder(os.path.dirname(path))


def read(path, owners=()):
    """Read a file that :func:`write` has written.

    :param owners: the IDs of users who are trusted beside root and this
        process's
    :raises OSError: when it cannot be read
    :raises ValueError: when it belongs to someone else, or is no text
    """
    with open(path, encoding='utf-8') as stream:
        owner = os.fstat(stream.fileno()).st_uid
        if owner not in (0, os.geteuid()) + tuple(owners):
            raise ValueError('it belongs to user %d' % owner)
        return stream.read()


def set_aside(path):
    """Keep a file that cannot be trusted where nothing reads it.

    :returns: its new path
    :raises OSError: when it cannot be renamed
    """
    aside = path + '.rejected'
    if os.path.exists(aside):
        aside = '%s.%d' % (aside, time.time_ns())
    os.rename(path, aside)
    sync_folder(os.path.dirname(path))
    return aside
