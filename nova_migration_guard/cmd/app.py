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

"""nova-migration-guard: what operators see of a compute host."""

import sys
import typing

from cliff import app
from cliff import commandmanager

from nova_migration_guard.cmd import errors
from nova_migration_guard.cmd import explain
from nova_migration_guard.cmd import held
from nova_migration_guard.cmd import host
from nova_migration_guard.cmd import job
from nova_migration_guard.cmd import journal
from nova_migration_guard.cmd import settings
from nova_migration_guard import version

NAME = 'nova-migration-guard'

COMMANDS: typing.Dict[str, typing.Any] = {
    'explain': explain.Explain,
    'held list': held.ListHeld,
    'held release': held.ReleaseHeld,
    'held show': held.ShowHeld,
    'job list': job.ListJobs,
    'journal list': journal.ListJournal,
    'journal show': journal.ShowJournal,
}

# These need no host.
_GENERAL = ('help', 'complete')


class GuardApp(app.App):
    """The command.

    :ivar host: the :class:`nova_migration_guard.cmd.host.Host`
    :ivar code: the exit status of what has failed
    """

    host: typing.Any

    NAME = NAME
    # cliff's 1 shows what the library logs at INFO
    DEFAULT_VERBOSE_LEVEL = 0

    def __init__(self, **streams):
        manager = commandmanager.CommandManager(None)
        for name, command in COMMANDS.items():
            manager.add_command(name, command)
        super(GuardApp, self).__init__(
            'Shows what nova-migration-guard does on this compute host.',
            version.version_string(), manager, **streams)
        self.host = None
        self.code = errors.OK

    def build_option_parser(self, description, version,
                            argparse_kwargs=None):
        parser = super(GuardApp, self).build_option_parser(
            description, version, argparse_kwargs)
        parser.add_argument(
            '--config-file', action='append', metavar='PATH',
            help='A file that nova-compute reads. Can be repeated. Without '
                 'it, the files that nova-compute finds by itself.')
        parser.add_argument(
            '--config-dir', action='append', metavar='FOLDER',
            help='A folder whose *.conf files nova-compute reads. Can be '
                 'repeated.')
        return parser

    def prepare_to_run_command(self, cmd):
        if cmd.cmd_name in _GENERAL:
            return
        self.host = host.Host(settings.load(
            self.options.config_file, self.options.config_dir))

    def clean_up(self, cmd, result, err):
        if err is not None and isinstance(err.__cause__, SystemExit):
            # cliff 3.x turns what argparse ends with into an error
            self.code = errors.USAGE
        elif err is not None:
            self.code = getattr(err, 'code', errors.FAILED)


def main(argv=None, **streams):
    """Run the command.

    :param argv: its arguments; those of the process without any
    :param streams: see ``cliff.app.App``
    :returns: its exit status
    """
    if argv is None:
        argv = sys.argv[1:]
    guard_app = GuardApp(**streams)
    if not argv:
        # cliff would ask for commands
        guard_app.parser.print_help(guard_app.stderr)
        return errors.USAGE
    result = guard_app.run(argv)
    return guard_app.code or result


if __name__ == '__main__':
    sys.exit(main())
