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

"""The durable record of operations in flight.

One JSON file for an instance's live migration, and one for each of its block
operations, below ``[migration_guard] journal_dir`` in a folder
of this host's name. What an interrupted operation needs to be finished or
undone is only in the memory of nova-compute otherwise. A file is written as a
whole or not at all (temporary file, fsync, rename, fsync of the folder). It
can hold volume credentials, so it is for its owner only, and nothing of its
content but phase and names is ever logged.
"""

import contextlib
import dataclasses
import errno
import json
import os
import typing
from urllib import parse

from oslo_concurrency import lockutils
from oslo_log import log as logging

from nova_migration_guard import durable

LOG = logging.getLogger(__name__)

#: Of the files. A file of another version is set aside.
VERSION = 1

LIVE_MIGRATION = 'live-migration'

# The phases, in the order in which an operation goes through them.
PREPARING = 'preparing'
#: pre_live_migration is done at the destination
PREPARED = 'prepared'
#: libvirt is about to be asked to migrate
STARTED = 'started'
#: the guest runs at the destination, and post-migration has begun
POST_MIGRATION = 'post-migration'
PHASES = (PREPARING, PREPARED, STARTED, POST_MIGRATION)

# Block operations, and their phases.
LIVE_SNAPSHOT = 'live-snapshot'
VOLUME_SWAP = 'volume-swap'
VOLUME_SNAPSHOT_CREATE = 'volume-snapshot-create'
VOLUME_SNAPSHOT_DELETE = 'volume-snapshot-delete'
BLOCK_OPERATIONS = (LIVE_SNAPSHOT, VOLUME_SWAP, VOLUME_SNAPSHOT_CREATE,
                    VOLUME_SNAPSHOT_DELETE)

BEGUN = 'begun'
#: a volume is about to be connected to this host
CONNECTING = 'connecting'
#: libvirt is about to be asked to copy or to merge
COPYING = 'copying'
#: the guest's file systems are about to be frozen
FREEZING = 'freezing'
#: libvirt is about to be asked to let the guest use the copy
PIVOTING = 'pivoting'
BLOCK_PHASES = (BEGUN, CONNECTING, COPYING, FREEZING, PIVOTING)

#: Of an entry's file, and what separates a block operation's subject in it.
ENDING = '.json'
SEPARATOR = '+'


class JournalError(Exception):
    """The journal cannot be written or read; says which file and why."""


@dataclasses.dataclass(frozen=True)
class Entry(object):
    """What is needed to finish or undo one live migration.

    :ivar operation: :data:`LIVE_MIGRATION`
    :ivar phase: one of :data:`PHASES`
    :ivar instance: the instance's UUID
    :ivar migration: the migration record's UUID
    :ivar vm_state: the instance's, when the operation began
    :ivar request_id: of the user's request
    :ivar begun: POSIX time
    :ivar migrate_data: Nova's, as a primitive of Nova's own serializer
    :ivar source_bdms: the block device mappings before the destination's
        nova-compute changed them, as a primitive
    :ivar domain_xml: the inactive XML of the domain, or None
    """
    operation: str
    phase: str
    instance: str
    migration: str
    source: str
    destination: str
    vm_state: str
    request_id: str
    begun: float
    block_migration: bool
    # these three can hold secrets
    migrate_data: dict = dataclasses.field(repr=False)
    source_bdms: dict = dataclasses.field(repr=False)
    domain_xml: typing.Optional[str] = dataclasses.field(
        default=None, repr=False)

    #: a live migration is about the instance as a whole
    subject: typing.ClassVar[typing.Optional[str]] = None
    operations: typing.ClassVar[typing.Tuple[str, ...]] = (LIVE_MIGRATION,)
    phases: typing.ClassVar[typing.Tuple[str, ...]] = PHASES

    @property
    def host(self):
        return self.source


@dataclasses.dataclass(frozen=True)
class BlockOperation(object):
    """What is needed to finish or undo one operation on a disk.

    :ivar operation: one of :data:`BLOCK_OPERATIONS`
    :ivar phase: one of :data:`BLOCK_PHASES`
    :ivar instance: the instance's UUID
    :ivar host: the host's name
    :ivar subject: what it is about: the image, the volume that is swapped
        out, or the volume's snapshot
    :ivar request_id: of the user's request
    :ivar begun: POSIX time
    :ivar disk: the target name of the disk, or None before it is known
    :ivar target: the file, device or network name that is written to, or
        None
    :ivar details: what the operation's own code needs
    :ivar domain_xml: the inactive XML of the domain with its secrets, or None
    """
    operation: str
    phase: str
    instance: str
    host: str
    subject: str
    request_id: str
    begun: float
    disk: typing.Optional[str] = None
    target: typing.Optional[str] = None
    # these two can hold secrets
    details: dict = dataclasses.field(default_factory=dict, repr=False)
    domain_xml: typing.Optional[str] = dataclasses.field(
        default=None, repr=False)

    operations: typing.ClassVar[typing.Tuple[str, ...]] = BLOCK_OPERATIONS
    phases: typing.ClassVar[typing.Tuple[str, ...]] = BLOCK_PHASES


_TEXT_OR_NOT = (str, type(None))
_TYPES: typing.Dict[str, typing.Any] = {
    'begun': (int, float), 'block_migration': bool, 'migrate_data': dict,
    'source_bdms': dict, 'domain_xml': _TEXT_OR_NOT, 'disk': _TEXT_OR_NOT,
    'target': _TEXT_OR_NOT, 'details': dict}


def load(text, host, name):
    """Make an entry of a file's text.

    :param name: the file's name, without its ending
    :returns: an :class:`Entry` or a :class:`BlockOperation`
    :raises ValueError: when it is not that entry of that host; the message
        does not quote the content
    """
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError('it is no JSON object')
    if content.pop('version', None) != VERSION:
        raise ValueError('it is not of version %d' % VERSION)
    kind = Entry if SEPARATOR not in name else BlockOperation
    names = {known.name for known in dataclasses.fields(kind)}
    wrong = names.symmetric_difference(content)
    if wrong:
        raise ValueError('missing or unknown: %s' % ', '.join(sorted(wrong)))
    for field, value in content.items():
        if not isinstance(value, _TYPES.get(field, str)):
            raise ValueError('%s is of the wrong type' % field)
    entry = kind(**content)
    if entry.operation not in kind.operations or (
            entry.phase not in kind.phases):
        raise ValueError('its operation or phase is unknown')
    if _name(entry.instance, entry.subject) != name:
        raise ValueError('it is about instance %s' % entry.instance)
    if entry.host != host:
        raise ValueError('it is of host %s' % entry.host)
    return entry


def _name(uuid, subject):
    """The name of an entry's file, without its ending."""
    if subject is None:
        return uuid
    # a snapshot's ID comes from Cinder
    return uuid + SEPARATOR + parse.quote(subject, safe='')


class Journal(object):
    """The entries of one host.

    :param folder: ``[migration_guard] journal_dir``
    :param host: the host's name, as Nova's records have it
    """

    def __init__(self, folder, host):
        self._host = host
        self.folder = durable.folder_of(folder, host)

    def _path(self, name):
        return os.path.join(self.folder, name + ENDING)

    @contextlib.contextmanager
    def _locked(self):
        """Keep the operators' command and nova-compute apart."""
        try:
            durable.make_folder(self.folder)
            with lockutils.lock('journal', 'migration-guard-', external=True,
                                lock_path=self.folder):
                yield
        except OSError as e:
            raise JournalError('The journal in %s cannot be used: %s' % (
                self.folder, e.strerror or e))

    def _store(self, entry):
        durable.write(
            self._path(_name(entry.instance, entry.subject)),
            json.dumps(dict(dataclasses.asdict(entry), version=VERSION)))

    def _fetch(self, name):
        path = self._path(name)
        try:
            return load(durable.read(path), self._host, name)
        except OSError as e:
            if e.errno == errno.ENOENT:
                return None
            raise
        except ValueError as e:
            self._set_aside(path, e)
            return None

    def _set_aside(self, path, reason):
        aside = durable.set_aside(path)
        if isinstance(reason, json.JSONDecodeError):
            # its text would quote the file
            reason = 'it is no JSON from character %d on' % reason.pos
        LOG.error('%(path)s is not an entry of the journal: %(reason)s. It '
                  'is kept as %(aside)s and otherwise ignored.',
                  {'path': path, 'reason': reason, 'aside': aside})

    def begin(self, entry):
        """Write down an operation that begins.

        :param entry: an :class:`Entry` or a :class:`BlockOperation`
        :raises JournalError: when it cannot be written durably
        """
        with self._locked():
            self._store(entry)

    def advance(self, uuid, phase, subject=None, **changes):
        """Write down that an operation has reached a phase.

        :param uuid: the instance's UUID
        :param phase: one of the operation's phases; one that it has passed
            already changes nothing
        :param subject: of a block operation; None for the live migration
        :param changes: fields of the entry that are better known now
        :returns: whether there is an entry
        :raises JournalError: when it cannot be written durably
        """
        with self._locked():
            entry = self._fetch(_name(uuid, subject))
            if entry is None:
                return False
            if entry.phases.index(phase) > entry.phases.index(entry.phase):
                self._store(dataclasses.replace(entry, phase=phase,
                                                **changes))
            return True

    def entry(self, uuid):
        """Read the entry of one instance's live migration.

        What is not an entry is set aside as ``*.rejected`` and logged.

        :param uuid: the instance's UUID
        :returns: an :class:`Entry`, or None
        :raises JournalError: when the journal cannot be read
        """
        with self._locked():
            return self._fetch(_name(uuid, None))

    def entries(self):
        """Read the entry of every live migration.

        :returns: {instance UUID: :class:`Entry`}
        :raises JournalError: when the journal cannot be read
        """
        return {entry.instance: entry for entry in self._all()
                if entry.subject is None}

    def block_operations(self, uuid=None):
        """Read the entries of block operations.

        :param uuid: of one instance; None for all instances
        :returns: a list of :class:`BlockOperation`, the earliest first
        :raises JournalError: when the journal cannot be read
        """
        return sorted((entry for entry in self._all(uuid)
                       if entry.subject is not None),
                      key=lambda entry: (entry.begun, entry.subject))

    def _all(self, uuid=None):
        found = []
        with self._locked():
            for name in sorted(os.listdir(self.folder)):
                if name.endswith(ENDING) and name.startswith(uuid or ''):
                    entry = self._fetch(name[:-len(ENDING)])
                    if entry is not None:
                        found.append(entry)
        return found

    def end(self, uuid, subject=None):
        """Remove the entry of an operation that has ended.

        :param uuid: the instance's UUID
        :param subject: of a block operation; None for the live migration
        :raises JournalError: when it cannot be removed
        """
        with self._locked():
            try:
                os.unlink(self._path(_name(uuid, subject)))
            except OSError as e:
                if e.errno != errno.ENOENT:
                    raise
            else:
                durable.sync_folder(self.folder)
