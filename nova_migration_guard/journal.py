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

One JSON file an instance, below ``[migration_guard] journal_dir`` in a folder
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

_ENDING = '.json'


class JournalError(Exception):
    """The journal cannot be written or read; says which file and why."""


@dataclasses.dataclass(frozen=True)
class Entry(object):
    """What is needed to finish or undo one operation.

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


_TYPES: typing.Dict[str, typing.Any] = {
    'begun': (int, float), 'block_migration': bool, 'migrate_data': dict,
    'source_bdms': dict, 'domain_xml': (str, type(None))}


def _load(text, host, uuid):
    """Make an entry of a file's text.

    :raises ValueError: when it is not an entry of that host and instance;
        the message does not quote the content
    """
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError('it is no JSON object')
    if content.pop('version', None) != VERSION:
        raise ValueError('it is not of version %d' % VERSION)
    names = {field.name for field in dataclasses.fields(Entry)}
    wrong = names.symmetric_difference(content)
    if wrong:
        raise ValueError('missing or unknown: %s' % ', '.join(sorted(wrong)))
    for name, value in content.items():
        if not isinstance(value, _TYPES.get(name, str)):
            raise ValueError('%s is of the wrong type' % name)
    entry = Entry(**content)
    if entry.operation != LIVE_MIGRATION or entry.phase not in PHASES:
        raise ValueError('its operation or phase is unknown')
    if entry.instance != uuid:
        raise ValueError('it is about instance %s' % entry.instance)
    if entry.source != host:
        raise ValueError('it is of host %s' % entry.source)
    return entry


class Journal(object):
    """The entries of one host.

    :param folder: ``[migration_guard] journal_dir``
    :param host: the host's name, as Nova's records have it
    """

    def __init__(self, folder, host):
        self._host = host
        self.folder = durable.folder_of(folder, host)

    def _path(self, uuid):
        return os.path.join(self.folder, uuid + _ENDING)

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
            self._path(entry.instance),
            json.dumps(dict(dataclasses.asdict(entry), version=VERSION)))

    def _fetch(self, uuid):
        path = self._path(uuid)
        try:
            return _load(durable.read(path), self._host, uuid)
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

        :param entry: an :class:`Entry`
        :raises JournalError: when it cannot be written durably
        """
        with self._locked():
            self._store(entry)

    def advance(self, uuid, phase, **changes):
        """Write down that an operation has reached a phase.

        :param uuid: the instance's UUID
        :param phase: one of :data:`PHASES`; one that it has passed already
            changes nothing
        :param changes: fields of :class:`Entry` that are better known now
        :returns: whether there is an entry
        :raises JournalError: when it cannot be written durably
        """
        with self._locked():
            entry = self._fetch(uuid)
            if entry is None:
                return False
            if PHASES.index(phase) > PHASES.index(entry.phase):
                self._store(dataclasses.replace(entry, phase=phase,
                                                **changes))
            return True

    def entry(self, uuid):
        """Read one instance's entry.

        What is not an entry is set aside as ``*.rejected`` and logged.

        :param uuid: the instance's UUID
        :returns: an :class:`Entry`, or None
        :raises JournalError: when the journal cannot be read
        """
        with self._locked():
            return self._fetch(uuid)

    def entries(self):
        """Read every entry.

        :returns: {instance UUID: :class:`Entry`}
        :raises JournalError: when the journal cannot be read
        """
        found = {}
        with self._locked():
            for name in sorted(os.listdir(self.folder)):
                if name.endswith(_ENDING):
                    entry = self._fetch(name[:-len(_ENDING)])
                    if entry is not None:
                        found[entry.instance] = entry
        return found

    def end(self, uuid):
        """Remove the entry of an operation that has ended.

        :param uuid: the instance's UUID
        :raises JournalError: when it cannot be removed
        """
        with self._locked():
            try:
                os.unlink(self._path(uuid))
            except OSError as e:
                if e.errno != errno.ENOENT:
                    raise
            else:
                durable.sync_folder(self.folder)
