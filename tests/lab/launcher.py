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

"""Starts the programs of virtualenvs on the controller."""

import os

from tests.lab import processes
from tests.lab import settings as lab_settings

#: Seconds for the schema of a database, on a small machine.
SYNC_TIMEOUT = 600


def quiet():
    """Environment variables of all OpenStack programs."""
    return {'PYTHONWARNINGS': 'ignore', 'PYTHONUNBUFFERED': '1',
            # the second start of a program shall be a fast one
            'PYTHONDONTWRITEBYTECODE': '',
            'PATH': '/usr/sbin:/sbin:' + os.environ['PATH']}


class Launcher(object):
    """Of one lab.

    :param settings: of the lab
    :param machine: Namespace of the controller
    """

    def __init__(self, settings, machine):
        self._settings = settings
        self._machine = machine

    def process(self, name, argv, machine=None, **env):
        """A Process, not started.

        :param machine: Namespace; the controller by default
        :param env: environment variables to add
        """
        return processes.Process(
            name, argv, self._settings.state / 'pid', self._settings.logs,
            wrap=(machine or self._machine).enter, env=dict(quiet(), **env))

    def wsgi(self, name, venv, module, port, *argv, **env):
        """A Process that serves an API.

        :param venv: folder of its virtualenv
        :param module: that has the WSGI application
        :param argv: what the application finds on its command line
        """
        return self.process(
            name, (venv / 'bin' / 'python',
                   lab_settings.PROGRAMS / 'serve_wsgi.py', module, port) +
            argv, PYTHONPATH=str(lab_settings.PROGRAMS), **env)

    def manage(self, venv, program, *argv):
        """Run a program, and return what it printed.

        :raises namespaces.CommandFailed: it failed
        """
        return self._machine.run(venv / 'bin' / program, *argv, env=quiet(),
                                 timeout=SYNC_TIMEOUT)
