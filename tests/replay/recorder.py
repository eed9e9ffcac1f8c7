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
"""Keeps what happened in a run of a scenario, and writes it down."""

import collections
import json
import os
import time


class Recorder(object):
    """Keeps the events of a run, with the time at which they happened."""

    def __init__(self):
        self.events = []
        self._began = time.monotonic()

    def event(self, actor, text, **snapshot):
        self.events.append(collections.OrderedDict([
            ('t', round(time.monotonic() - self._began, 2)),
            ('actor', actor), ('what', text), ('nova', snapshot['nova']),
            ('hosts', snapshot['hosts'])]))

    def write(self, name, guard, release, verdict, safe):
        """Write one JSON object to the file that ``NMG_EVENTS`` names, if any.

        :param name: of the scenario
        :param guard: whether with the guard
        """
        path = os.environ.get('NMG_EVENTS')
        if not path:
            return
        record = collections.OrderedDict([
            ('scenario', name), ('guard', 'on' if guard else 'off'),
            ('release', release), ('verdict', verdict), ('safe', safe),
            ('events', self.events)])
        with open(path, 'w') as stream:
            json.dump(record, stream, indent=1)
            stream.write('\n')
