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

"""nova-migration-guard-status: may this host be upgraded and relied on?

``upgrade check`` of oslo.upgradecheck: 0 when all is well, 1 for a warning, 2
for a failure.
"""

import os
import sys
import tempfile

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_migration_guard.cmd import errors
from nova_migration_guard.cmd import host as hosts
from nova_migration_guard.cmd import ping
from nova_migration_guard.cmd import settings
from nova_migration_guard import compat
from nova_migration_guard import conf as guard_conf
from nova_migration_guard import seams

NAME = 'nova-migration-guard-status'

Code, Result = upgradecheck.Code, upgradecheck.Result

#: Faults that matter to the guard: (of what, fixed in, what happens). The
#: numbers are libvirt's: 1000000 * major + 1000 * minor + micro.
FAULTS = (
    ('libvirt', 3003000, 'it does not name the operation of a job, so a '
     'backup is told from a migration by Nova\'s records only'),
    ('libvirt', 3009000, 'the end of a storage migration races with the '
     'state of the guest\'s devices (libvirt commit 32c29f10)'),
    ('libvirt', 8005000, 'a post-copy migration whose network broke cannot '
     'be recovered'),
    ('QEMU', 2011000, 'the end of a storage migration races with the state '
     'of the guest\'s devices (pause-before-switchover is missing)'),
)

# A folder on one of these is empty after a restart of the host.
_FORGETFUL = ('tmpfs', 'ramfs')
_ROOM = 1 << 20

_PEERS = cfg.MultiStrOpt(
    'peer', default=[], metavar='HOST',
    help='Another compute host, whose nova-compute must answer. Can be '
         'repeated. The destinations in the journal are asked as well.')


def _numbers(version):
    return '%d.%d.%d' % (version // 1000000, version // 1000 % 1000,
                         version % 1000)


class Checks(upgradecheck.UpgradeCommands):
    """What is checked of one host.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    """

    def __init__(self, conf):
        super(Checks, self).__init__()
        self._conf = conf

    def _host(self):
        return hosts.Host(self._conf)

    def _nova(self):
        try:
            release = seams.check(self._conf)
        except compat.UnsupportedNova as e:
            return Result(Code.FAILURE, str(e))
        return Result(Code.SUCCESS, 'nova %s' % release)

    def _options(self):
        try:
            enabled = self._conf.migration_guard.enabled
        except (cfg.Error, ValueError) as e:
            return Result(Code.FAILURE, '[migration_guard] enabled: %s' % e)
        bad = guard_conf.replace_bad_values(self._conf)
        if bad:
            return Result(Code.FAILURE, '[migration_guard] has values that '
                          'cannot be read: %s' % ', '.join(bad))
        unknown = guard_conf.unknown_options(self._conf)
        if unknown:
            return Result(Code.WARNING, 'no options of the guard: %s' %
                          ', '.join('%s in %s' % each[1::-1]
                                    for each in unknown))
        if not enabled:
            return Result(Code.WARNING, '[migration_guard] enabled is not '
                          'set in %s' % ', '.join(self._conf.config_file or
                                                  ['any file']))
        return Result(Code.SUCCESS, 'enabled, mode: %s' %
                      self._conf.migration_guard.mode)

    def _journal(self):
        host = self._host()
        parent = self._conf.migration_guard.journal_dir
        try:
            folder = next(path for path in (host.folder, parent,
                                            os.path.dirname(parent))
                          if os.path.isdir(path))
        except StopIteration:
            return Result(Code.FAILURE, '%s cannot be made: the folder above '
                          'it is not there' % parent)
        try:
            with tempfile.NamedTemporaryFile(dir=folder):
                pass
            room = os.statvfs(folder)
        except OSError as e:
            return Result(Code.FAILURE, '%s cannot be written: %s' % (
                folder, e.strerror or e))
        if room.f_bavail * room.f_frsize < _ROOM:
            return Result(Code.FAILURE, '%s has no room left' % folder)
        kind = _file_system(folder)
        if kind in _FORGETFUL:
            return Result(Code.WARNING, '%s is a %s, which does not outlive '
                          'a restart of the host' % (folder, kind))
        try:
            damaged = [file.name for file in host.journal() if file.fault]
        except errors.CommandError as e:
            return Result(Code.FAILURE, str(e))
        if damaged or host.rejected():
            return Result(Code.WARNING, 'damaged entries: %s' % ', '.join(
                damaged + host.rejected()))
        return Result(Code.SUCCESS, folder)

    def _libvirt(self):
        try:
            self._host().jobs().domains(
                self._conf.migration_guard.call_timeout)
        except Exception as e:
            return Result(Code.FAILURE, str(e))
        return Result(Code.SUCCESS, settings.libvirt_uri(self._conf))

    def _versions(self):
        try:
            found = self._host().libvirt_versions()
        except Exception as e:
            return Result(Code.WARNING, 'not known: %s' % e)
        faults = ['%s %s: %s' % (name, _numbers(found[name]), what)
                  for name, fixed, what in FAULTS
                  if found.get(name) and found[name] < fixed]
        if faults:
            return Result(Code.WARNING, '; '.join(faults))
        return Result(Code.SUCCESS, ', '.join(
            '%s %s' % (name, _numbers(number))
            for name, number in sorted(found.items())))

    def _peers(self):
        try:
            peers = set(self._conf.peer).union(
                file.content.destination for file in self._host().journal()
                if file.content is not None and
                file.content.subject is None)
        except errors.CommandError as e:
            return Result(Code.WARNING, str(e))
        if not peers:
            return Result(Code.SUCCESS, 'none to ask; name one by --peer')
        said = {peer: ping.ping(self._conf, peer) for peer in sorted(peers)}
        silent = {peer: why for peer, why in said.items() if why}
        if not silent:
            return Result(Code.SUCCESS, ', '.join(said))
        also = {peer: ping.ping_libvirt(self._conf, peer) for peer in silent}
        return Result(
            Code.FAILURE if any(also.values()) else Code.WARNING,
            '; '.join('%s over RPC: %s, libvirt: %s' % (
                peer, why, also[peer] or 'answers')
                for peer, why in silent.items()))

    _upgrade_checks = (
        ('Nova', _nova), ('Options', _options), ('Journal', _journal),
        ('libvirt', _libvirt), ('Versions', _versions), ('Peers', _peers))


def _file_system(folder):
    """The type of the file system that a folder is on, or None."""
    folder, best, kind = os.path.realpath(folder), '', None
    try:
        with open('/proc/self/mounts') as mounts:
            for line in mounts:
                point, of_type = line.split()[1:3]
                inside = (folder + '/').startswith(point.rstrip('/') + '/')
                if inside and len(point) >= len(best):
                    best, kind = point, of_type
    except OSError:
        return None
    return kind


def main(argv=None):
    """Run the command.

    :param argv: its arguments; those of the process without any
    :returns: its exit status
    """
    conf = settings.make()
    conf.register_cli_opt(_PEERS)
    argv = list(sys.argv[1:] if argv is None else argv)
    if not any(argument.startswith('--config-dir') for argument in argv):
        for folder in settings.default_folders():
            argv = ['--config-dir', folder] + argv
    return upgradecheck.main(
        conf, settings.PROJECT, Checks(conf), argv=argv,
        default_config_files=cfg.find_config_files(
            settings.PROJECT, settings.PROGRAM))


if __name__ == '__main__':
    sys.exit(main())
