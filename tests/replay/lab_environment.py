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
"""Brings the lab up for the scenarios, unless it is up already."""

import os
import sys

from tests.lab import deployment
from tests.lab import settings
from tests.replay import environment
from tests.replay import process

#: Seconds within which the lab is up, its virtualenvs included, and down.
UP_LIMIT = 2400
DOWN_LIMIT = 300
_FOLDER = os.path.join(environment.TOP, 'tests', 'lab')


class Lab(object):
    """The lab of one release; ``NOVA_LAB_ROOT`` and so on say which.

    :param release: of Nova, or None for the lab's own default
    :param progress: Progress that tells of it
    """

    def __init__(self, release, progress):
        more = {'release': release} if release else {}
        self._settings = settings.Settings.from_environ(**more)
        self._progress = progress
        self._log = None

    def up(self, log):
        """Return the Environment to play in.

        :param log: path of a file for the details
        :raises environment.Failure: it cannot be brought up
        """
        if os.geteuid():
            raise environment.Failure(
                'the lab needs root: it makes namespaces')
        release = self._settings.release
        if not deployment.Deployment(self._settings).is_up:
            self._log = log
            self._progress.begin('bringing up the lab, nova %s' % release)
            form = ['--full'] if self._settings.full else []
            if self._run('up', UP_LIMIT, '--release', release, *form):
                raise environment.Failure('the lab does not come up')
            self._progress.end('up')
        return environment.Environment(sys.executable, release, True)

    def down(self):
        """Take it down, if this object brought it up."""
        if self._log:
            self._run('down', DOWN_LIMIT, self._settings.name)
            self._log = None

    def _run(self, program, limit, *more):
        argv = [sys.executable, os.path.join(_FOLDER, program), '--root',
                str(self._settings.root)] + list(more)
        try:
            return process.run(argv, self._log, limit, self._progress.tick)
        except process.TimedOut as exc:
            raise environment.Failure('tests/lab/%s %s' % (program, exc))
