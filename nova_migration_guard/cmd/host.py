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

"""What the commands can read of a compute host.

Its configuration, the files of the guard, and libvirt, over a read-only
connection. Nothing is changed, but that an operator's word is written down,
and nothing is asked of Nova: so the commands work while nova-compute, RabbitMQ
and the API are down.
"""

import collections
import contextlib
import os

from nova_migration_guard.cmd import errors
from nova_migration_guard.cmd import settings
from nova_migration_guard import connections
from nova_migration_guard import durable
from nova_migration_guard import held
from nova_migration_guard import journal
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import words
from nova_migration_guard import workers

REJECTED = '.rejected'

#: A file of the guard: its name, what it says or None, and why it says
#: nothing.
File = collections.namedtuple('File', 'name content fault')

# virErrorNumber: what libvirt says to a user who may not connect. 38 is any
# error of the system.
_DENIED = (45, 79, 88)
_SYSTEM_ERROR = 38


class Host(object):
    """One compute host.

    :param conf: an ``oslo_config.cfg.ConfigOpts`` of
        :func:`nova_migration_guard.cmd.settings.load`
    """

    def __init__(self, conf):
        self.conf = conf
        self.options = conf.migration_guard
        self.name = conf.host
        self.folder = durable.folder_of(self.options.journal_dir, self.name)
        self._words = words.Words(self.options.journal_dir, self.name)

    # ---- files

    @contextlib.contextmanager
    def _reading(self):
        try:
            yield
        except PermissionError:
            raise errors.NoRights(
                '%s is for the user of nova-compute and for root '
                'only.' % self.options.journal_dir)
        except OSError as e:
            raise errors.CommandError('%s cannot be read: %s' % (
                self.folder, e.strerror or e))

    def _names(self, *folders):
        try:
            return sorted(os.listdir(os.path.join(self.folder, *folders)))
        except FileNotFoundError:
            return []

    def _file(self, name, load, *folders):
        """Read a file, and set nothing aside.

        :param name: without its ending
        :param load: makes what the file says of its text and its name
        :returns: a :data:`File`, or None when it is gone
        """
        path = os.path.join(self.folder, *(folders + (name + held.ENDING,)))
        try:
            owner = os.stat(self.folder).st_uid
            return File(name, load(durable.read(path, [owner]), self.name,
                                   name), '')
        except FileNotFoundError:
            return None
        except PermissionError:
            raise
        except ValueError as e:
            # a decoder's text would quote the file
            fault = getattr(e, 'msg', None) or str(e)
            return File(name, None, fault)

    def _files(self, load, *folders):
        with self._reading():
            found = [self._file(name[:-len(held.ENDING)], load, *folders)
                     for name in self._names(*folders)
                     if name.endswith(held.ENDING)]
        return [file for file in found if file is not None]

    def journal(self):
        """Read the journal.

        :returns: a list of :data:`File`, whose content is a
            :class:`nova_migration_guard.journal.Entry` or a
            :class:`nova_migration_guard.journal.BlockOperation`
        """
        return self._files(journal.load)

    def rejected(self):
        """The names of the files that nova-compute has set aside."""
        with self._reading():
            return [name for name in self._names() if REJECTED in name]

    def entries(self, uuid):
        """Read what the journal has of one instance.

        :returns: (:class:`nova_migration_guard.journal.Entry` or None,
            [:class:`nova_migration_guard.journal.BlockOperation`])
        """
        found = [file.content for file in self.journal()
                 if file.content is not None and
                 file.content.instance == uuid]
        migrations = [entry for entry in found if entry.subject is None]
        return (migrations[0] if migrations else None,
                [entry for entry in found if entry.subject is not None])

    def held(self):
        """Read the records of the instances that are held.

        :returns: a list of :data:`File`, whose content is a
            :class:`nova_migration_guard.held.Record`
        """
        return self._files(held.load, held.FOLDER)

    def held_one(self, uuid):
        """Read the record of one instance.

        :returns: a :class:`nova_migration_guard.held.Record`, or None when it
            is not held
        :raises nova_migration_guard.cmd.errors.CommandError: when the record
            is damaged
        """
        with self._reading():
            file = self._file(uuid, held.load, held.FOLDER)
        if file is not None and file.fault:
            raise errors.CommandError('The record of %s is damaged: %s' % (
                uuid, file.fault))
        return file.content if file else None

    def adopted(self):
        """The UUIDs of the instances whose migration was taken over."""
        with self._reading():
            return {name[:-len(held.ENDING)]
                    for name in self._names(held.ADOPTED)}

    def nova_compute_runs(self):
        """Tell whether a guarded nova-compute runs."""
        with self._reading():
            return held.runs(self.folder)

    # ---- the operator's word

    def say(self, word):
        """Write a :class:`nova_migration_guard.words.Word` down."""
        with self._reading():
            self._words.write(word)

    def take_back(self, uuid):
        """Remove the word about an instance."""
        self._words.remove(uuid)

    def has_word(self, uuid):
        """Tell whether nova-compute has not answered the word yet."""
        return self._words.is_there(uuid)

    # ---- libvirt

    def libvirt_versions(self):
        """Ask libvirt for its version and QEMU's.

        :returns: {'libvirt': number, 'QEMU': number}
        :raises Exception: what libvirt raises
        """
        import libvirt
        connection = libvirt.openReadOnly(settings.libvirt_uri(self.conf))
        try:
            return {'libvirt': connection.getLibVersion(),
                    'QEMU': connection.getVersion()}
        finally:
            connection.close()

    def jobs(self):
        """Connect to libvirt, for reading only.

        :returns: a :class:`nova_migration_guard.libvirt_jobs.LibvirtJobs`
        :raises nova_migration_guard.cmd.errors.CommandError: when that fails
        """
        try:
            import libvirt
        except ImportError as e:
            raise errors.LibvirtAway('libvirt-python is not there: %s' % e)
        # its errors are exceptions, and need not be lines as well
        libvirt.registerErrorHandler(lambda context, error: None, None)
        uri = settings.libvirt_uri(self.conf)
        try:
            libvirt.openReadOnly(uri).close()
        except libvirt.libvirtError as e:
            if e.get_error_code() in _DENIED or (
                    e.get_error_code() == _SYSTEM_ERROR and
                    'ermission denied' in str(e)):
                raise errors.NoRights('libvirt at %s: %s' % (uri, e))
            raise errors.LibvirtAway('libvirt at %s: %s' % (uri, e))
        return libvirt_jobs.LibvirtJobs(
            connections.Connections(lambda: libvirt.openReadOnly(uri),
                                    libvirt.libvirtError),
            libvirt.libvirtError,
            workers.Workers(self.options.libvirt_workers))
