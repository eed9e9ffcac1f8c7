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

"""The instances that are held, and the records by which operators see them.

One JSON file an instance, in a folder ``held`` beside the journal's entries.
nova-compute writes it when an instance is held and after each attempt to
settle it, and removes it when it is settled. It is there for the operators'
commands, which work while nova-compute is down, and says when it was written.
Nothing of it is a secret.
"""

import dataclasses
import errno
import fcntl
import json
import os
import time
import typing

from oslo_log import log as logging

from nova_migration_guard import durable
from nova_migration_guard import facts as known_facts
from nova_migration_guard import libvirt_jobs

LOG = logging.getLogger(__name__)

#: Of the files. The commands do not read one of another version.
VERSION = 1

FOLDER = 'held'
#: Beside it, an empty file for each migration that was taken over.
ADOPTED = 'adopted'
ENDING = '.json'

# Locked by a guarded nova-compute as long as it lives. The kernel unlocks it
# when the process dies, and the lock is seen from another PID namespace, too.
_RUNNING = 'running'


@dataclasses.dataclass
class Held(object):
    """An instance that waits to be settled.

    Nothing is held in report mode.

    :ivar reason: why, in one sentence
    :ivar since: POSIX time at which it was first held; kept over a restart of
        nova-compute
    :ivar attempts: how often it was tried to settle it
    :ivar next_attempt: when the settler tries again, on the monotonic clock
    :ivar reported: the reason that the instance's actions show
    :ivar deletable: whether it may be deleted all the same
    """
    reason: str
    since: float = dataclasses.field(default_factory=time.time)
    attempts: int = 0
    next_attempt: float = 0.0
    reported: str = ''
    deletable: bool = False


@dataclasses.dataclass(frozen=True)
class Record(object):
    """What nova-compute has written down of a held instance.

    :ivar instance: the instance's UUID
    :ivar host: the host's name, as Nova's records have it
    :ivar written: POSIX time of the last attempt
    :ivar next_attempt: POSIX time
    :ivar facts: the :class:`nova_migration_guard.facts.Facts` of the last
        attempt, without its disks; None where they could not be gathered
    :ivar answer: why an operator's word was refused at the last attempt
    """
    instance: str
    host: str
    since: float
    written: float
    reason: str
    attempts: int
    next_attempt: float
    deletable: bool
    facts: typing.Optional[known_facts.Facts] = None
    answer: str = ''


def _plain(value):
    """What the JSON encoder does not know."""
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, known_facts.Peer):
        return value.name
    raise TypeError(type(value).__name__)


def dump(record):
    """The text of a record's file.

    :param record: a :class:`Record`
    """
    content = dict(dataclasses.asdict(record), version=VERSION)
    if record.facts is not None:
        content['facts']['observation']['disks'] = None
    return json.dumps(content, default=_plain)


def _make(kind, content):
    """Make a dataclass's object.

    :raises ValueError: when it lacks a field or has an unknown one
    """
    try:
        return kind(**content)
    except TypeError as e:
        raise ValueError(str(e))


def _observation(content):
    if content['job'] is not None:
        content['job'] = _make(libvirt_jobs.DomainJob, content['job'])
    if content['block_jobs'] is not None:
        content['block_jobs'] = tuple(
            _make(libvirt_jobs.BlockJob, job)
            for job in content['block_jobs'])
    return _make(libvirt_jobs.Observation, content)


def _facts(content):
    content['records'] = tuple(
        _make(known_facts.Record, record) for record in content['records'])
    content['requested'] = frozenset(content['requested'])
    content['peer'] = known_facts.Peer[content['peer']]
    content['observation'] = _observation(content['observation'])
    return _make(known_facts.Facts, content)


_NUMBER = (int, float)
_TYPES: typing.Dict[str, typing.Any] = {
    'since': _NUMBER, 'written': _NUMBER, 'next_attempt': _NUMBER,
    'attempts': int, 'deletable': bool,
    'facts': (known_facts.Facts, type(None))}


def load(text, host, uuid):
    """Make a record of a file's text.

    :param host: the host's name
    :param uuid: the instance's UUID
    :returns: a :class:`Record`
    :raises ValueError: when it is not that instance's on that host
    """
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError('it is no JSON object')
    if content.pop('version', None) != VERSION:
        raise ValueError('it is not of version %d' % VERSION)
    try:
        if content.get('facts') is not None:
            content['facts'] = _facts(content['facts'])
    except (AttributeError, KeyError, TypeError) as e:
        raise ValueError('its facts: %s' % e)
    record = _make(Record, content)
    for field in dataclasses.fields(Record):
        if not isinstance(getattr(record, field.name),
                          _TYPES.get(field.name, str)):
            raise ValueError('%s is of the wrong type' % field.name)
    if record.instance != uuid:
        raise ValueError('it is about instance %s' % record.instance)
    if record.host != host:
        raise ValueError('it is of host %s' % record.host)
    return record


def runs(folder):
    """Tell whether a guarded nova-compute runs on a host.

    :param folder: the host's, below ``[migration_guard] journal_dir``
    :raises OSError: when the folder may not be read
    """
    try:
        with open(os.path.join(folder, _RUNNING)) as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


class Records(object):
    """The records of one host. Its methods raise nothing.

    :param parent: ``[migration_guard] journal_dir``
    :param host: the host's name, as Nova's records have it
    """

    def __init__(self, parent, host):
        self._host = host
        self._parent = durable.folder_of(parent, host)
        self._folder = os.path.join(self._parent, FOLDER)
        self._running = None

    def _path(self, uuid):
        return os.path.join(self._folder, uuid + ENDING)

    def show_running(self):
        """Show the commands, until this process ends, that it lives."""
        try:
            durable.make_folder(self._parent)
            descriptor = os.open(os.path.join(self._parent, _RUNNING),
                                 os.O_WRONLY | os.O_CREAT, 0o600)
            self._running = os.fdopen(descriptor, 'w')
            fcntl.flock(self._running, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            LOG.warning('The commands cannot see that nova-compute runs: %s',
                        e)

    def hide_running(self):
        """Show the commands that this process ends."""
        if self._running is not None:
            self._running.close()

    def since(self, uuid):
        """Since when an instance is held, as an earlier process knew.

        :returns: POSIX time; now, where there is no record
        """
        try:
            return load(durable.read(self._path(uuid)), self._host,
                        uuid).since
        except (OSError, ValueError):
            return time.time()

    def write(self, uuid, held, known, answer=''):
        """Write down that an instance is held.

        :param uuid: the instance's UUID
        :param held: its :class:`Held`
        :param known: its :class:`nova_migration_guard.facts.Facts`, or None
        :param answer: see :class:`Record`
        """
        now = time.time()
        record = Record(
            instance=uuid, host=self._host, since=held.since, written=now,
            reason=held.reason, attempts=held.attempts,
            next_attempt=now + held.next_attempt - time.monotonic(),
            deletable=held.deletable, facts=known, answer=answer)
        try:
            durable.make_folder(self._parent)
            durable.make_folder(self._folder)
            durable.write(self._path(uuid), dump(record))
        except (OSError, TypeError) as e:
            LOG.warning('The commands cannot see that the instance is held: '
                        '%s', e, instance_uuid=uuid)

    def remove(self, uuid):
        """Remove the record of an instance that is not held any more."""
        try:
            os.unlink(self._path(uuid))
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.ENOTDIR):
                LOG.warning('The commands still show the instance as held: '
                            '%s', e, instance_uuid=uuid)

    def show_adopted(self, uuid):
        """Show the commands that this process controls an earlier one's job.

        :param uuid: the instance's UUID
        """
        folder = os.path.join(self._parent, ADOPTED)
        try:
            durable.make_folder(self._parent)
            durable.make_folder(folder)
            open(os.path.join(folder, uuid + ENDING), 'w').close()
        except OSError as e:
            LOG.warning('The commands cannot see that its migration is '
                        'adopted: %s', e, instance_uuid=uuid)

    def hide_adopted(self, uuid):
        """Show the commands that the migration has ended."""
        try:
            os.unlink(os.path.join(self._parent, ADOPTED, uuid + ENDING))
        except OSError:
            # the commands ask libvirt for the job first
            pass

    def keep_only(self, uuids, adopted=()):
        """Remove the records of all instances but some.

        :param uuids: of those that are held
        :param adopted: of those whose migration is adopted
        """
        for folder, kept, remove in (
                (FOLDER, uuids, self.remove),
                (ADOPTED, adopted, self.hide_adopted)):
            try:
                names = os.listdir(os.path.join(self._parent, folder))
            except OSError:
                continue
            for name in names:
                uuid, ending = os.path.splitext(name)
                if ending == ENDING and uuid not in kept:
                    remove(uuid)
