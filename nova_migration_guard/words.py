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

"""The words of operators, on their way to nova-compute.

One JSON file an instance, in a folder ``words`` beside the records of what is
held. The command writes it, and nova-compute reads it at its next attempt to
settle the instance, or when it starts. A word is about one hold: it counts
only while that is on record.
"""

import dataclasses
import json
import os
import time
import typing

from oslo_log import log as logging

from nova_migration_guard import durable
from nova_migration_guard import held
from nova_migration_guard import release

LOG = logging.getLogger(__name__)

#: Of the files.
VERSION = 1

FOLDER = 'words'

#: Seconds between two looks for new words.
INTERVAL = 5


@dataclasses.dataclass(frozen=True)
class Word(object):
    """What an operator said.

    :ivar instance: the instance's UUID
    :ivar host: the host's name
    :ivar keep: a :class:`nova_migration_guard.release.Keep`
    :ivar by: who said it, for the log
    :ivar at: POSIX time
    """
    instance: str
    host: str
    keep: release.Keep
    by: str
    at: float


def _load(text, host, uuid):
    """Make a word of a file's text.

    :raises ValueError: when it is not about that instance on that host
    """
    content = json.loads(text)
    if not isinstance(content, dict) or content.pop(
            'version', None) != VERSION:
        raise ValueError('it is not of version %d' % VERSION)
    try:
        word = Word(**dict(content, keep=release.Keep(content.get('keep'))))
    except TypeError as e:
        raise ValueError(str(e))
    if (word.instance, word.host) != (uuid, host):
        raise ValueError('it is about %s on %s' % (word.instance, word.host))
    return word


class Words(object):
    """The words about one host's instances.

    :param parent: ``[migration_guard] journal_dir``
    :param host: the host's name, as Nova's records have it
    """

    def __init__(self, parent, host):
        self._host = host
        self._parent = durable.folder_of(parent, host)
        self._folder = os.path.join(self._parent, FOLDER)
        self._heard: typing.Dict[str, int] = {}

    def _path(self, uuid):
        return os.path.join(self._folder, uuid + held.ENDING)

    def write(self, word):
        """Write a word down, for the user whom nova-compute runs as.

        :param word: a :class:`Word`
        :raises OSError: when it cannot be written
        """
        durable.make_folder(self._folder)
        path = self._path(word.instance)
        durable.write(path, json.dumps(dict(
            dataclasses.asdict(word), keep=word.keep.value,
            version=VERSION)))
        owner = os.stat(self._parent)
        if owner.st_uid != os.geteuid():
            for each in (self._folder, path):
                os.chown(each, owner.st_uid, owner.st_gid)

    def read(self, uuid):
        """Read the word about a held instance. Raises nothing.

        One that cannot be read is removed and logged.

        :returns: a :class:`Word`, or None
        """
        record = os.path.join(self._parent, held.FOLDER, uuid + held.ENDING)
        try:
            word = _load(durable.read(self._path(uuid)), self._host, uuid)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as e:
            LOG.error("An operator's word cannot be read, and is ignored: %s",
                      e, instance_uuid=uuid)
            self.remove(uuid)
            return None
        if not os.path.exists(record):
            LOG.warning("An operator's word is ignored: the instance was not "
                        'held any more.', instance_uuid=uuid)
            self.remove(uuid)
            return None
        return word

    def new(self):
        """The UUIDs of the instances about which there is a new word."""
        try:
            found = {name[:-len(held.ENDING)]: os.stat(
                os.path.join(self._folder, name)).st_mtime_ns
                for name in os.listdir(self._folder)
                if name.endswith(held.ENDING)}
        except OSError:
            return []
        new = [uuid for uuid, at in found.items()
               if self._heard.get(uuid) != at]
        self._heard = found
        return new

    def is_there(self, uuid):
        """Tell whether there is a word that was not answered yet."""
        return os.path.exists(self._path(uuid))

    def remove(self, uuid):
        """Remove the word about an instance, if there is one."""
        try:
            os.unlink(self._path(uuid))
        except FileNotFoundError:
            return
        except OSError as e:
            LOG.warning("An operator's word cannot be removed: %s", e,
                        instance_uuid=uuid)


def now(uuid, host, keep, by):
    """A word that is said now. See :class:`Word`."""
    return Word(uuid, host, keep, by, time.time())
