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

"""The tables of the databases, kept for the next lab."""

import hashlib

from tests.lab import broker
from tests.lab import database


class Schemas(object):
    """Of one lab.

    :param settings: of the lab
    :param server: Database
    """

    def __init__(self, settings, server):
        self._folder = settings.root / 'schemas'
        self._server = server

    def once(self, name, pins, databases, sync):
        """Make tables, or take them as they were made by an earlier lab.

        The hundreds of migrations of an old release take minutes.

        :param name: of what needs the tables
        :param pins: file of the pins of its virtualenv; when they change,
            tables are made anew
        :param databases: names of those that it fills
        :param sync: makes the tables; called without arguments
        """
        key = hashlib.sha256()
        key.update(pins.read_bytes())
        # the cells have these addresses
        key.update(database.url(name).encode() + broker.URL.encode())
        kept = self._folder / (
            '%s-%s.sql' % (name, key.hexdigest()[:12]))
        if kept.exists():
            self._server.load(kept)
            return
        sync()
        kept.parent.mkdir(exist_ok=True)
        self._server.dump(databases, kept)
