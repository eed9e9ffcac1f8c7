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

"""The record of one run of a scenario: what happened, and what who said.

A scenario writes one JSON object to a file. This module checks it, and says
for each event which of its cells changed. It draws nothing: ``text`` and
``page`` do.
"""

import collections
import json

from tests.replay import facets

#: Column of the table that holds what Nova's API and database say.
NOVA = 'Nova says'

#: What a Nova without and with the guard is called.
KINDS = {'off': 'stock', 'on': 'guarded'}

#: One event. t: seconds since the scenario began; nova: what Nova says after
#: it; hosts: {host name: what libvirt and QEMU do there after it}.
Event = collections.namedtuple('Event', ['t', 'actor', 'what', 'nova',
                                         'hosts'])

#: One line of the table. cells: {column: [statement]}; fresh: {column:
#: set of the statements that were not there in the line before}, without the
#: columns that are as they were; gone: {host: [statement]} of what is there
#: no more, 'no disk'; clock: seconds since the first event.
Row = collections.namedtuple('Row', ['event', 'cells', 'fresh', 'gone',
                                     'clock'])


class BadRecord(ValueError):
    """A record that is not what a scenario writes; says what is wrong."""


def statements(text):
    """Return the statements of a cell: what stands between semicolons."""
    return [part.strip() for part in text.split(';') if part.strip()]


class Timeline(object):
    """One run of one scenario.

    :ivar scenario: name of the scenario
    :ivar guard: 'on' or 'off'
    :ivar release: release of Nova, '34.0.0'
    :ivar verdict: 'SAFE', or what went wrong, 'LOST DISK'
    :ivar safe: whether nothing was lost and nothing runs twice
    :ivar events: list of Event, oldest first
    """

    def __init__(self, scenario, guard, release, verdict, safe, events):
        self.scenario = scenario
        self.guard = guard
        self.release = release
        self.verdict = verdict
        self.safe = safe
        self.events = events

    @property
    def hosts(self):
        """Names of the hosts, in the order in which they appear."""
        names = []
        for event in self.events:
            names.extend(n for n in event.hosts if n not in names)
        return names

    @property
    def title(self):
        """'guarded' or 'stock', with the release."""
        return '%s nova %s' % (KINDS[self.guard], self.release)

    @property
    def columns(self):
        """Names of the columns that hold a state: Nova, then each host."""
        return [NOVA] + self.hosts

    def rows(self):
        """Return a list of Row, one for each event.

        A host that an event does not name is as it was before.
        """
        rows = []
        before = {}
        for event in self.events:
            cells = dict(before)
            cells[NOVA] = statements(event.nova)
            for host, text in event.hosts.items():
                cells[host] = statements(text)
            fresh = {column: set(cells[column]) - set(before.get(column, ()))
                     for column in cells
                     if cells[column] != before.get(column)}
            gone = {host: facets.gone(before.get(host, ()), cells[host])
                    for host in fresh if host != NOVA}
            rows.append(Row(event, cells, fresh, gone,
                            event.t - self.events[0].t))
            before = cells
        return rows

    def as_dict(self):
        """Return what ``--json`` prints of this run."""
        return collections.OrderedDict([
            ('scenario', self.scenario),
            ('guard', self.guard),
            ('release', self.release),
            ('verdict', self.verdict),
            ('safe', self.safe),
            ('events', [event._asdict() for event in self.events]),
        ])


def _need(where, mapping, key, kind, kind_name):
    if key not in mapping:
        raise BadRecord("%s has no '%s'" % (where, key))
    value = mapping[key]
    # bool is an int for Python; True is no time of day
    if not isinstance(value, kind) or (
            isinstance(value, bool) and kind is not bool):
        raise BadRecord("'%s' of %s is not %s: %r" % (key, where, kind_name,
                                                      value))
    return value


def _event(number, item):
    where = 'event %d' % number
    if not isinstance(item, dict):
        raise BadRecord('%s is not an object: %r' % (where, item))
    hosts = _need(where, item, 'hosts', dict, 'an object')
    for host in hosts:
        _need('hosts of ' + where, hosts, host, str, 'text')
    return Event(
        float(_need(where, item, 't', (int, float), 'a number')),
        _need(where, item, 'actor', str, 'text'),
        _need(where, item, 'what', str, 'text'),
        _need(where, item, 'nova', str, 'text'),
        collections.OrderedDict(hosts))


def from_dict(record):
    """Return the Timeline of a record.

    :raises BadRecord: it lacks something, or something has the wrong type
    """
    if not isinstance(record, dict):
        raise BadRecord('the record is not an object: %r' % (record,))
    where = 'the record'
    guard = _need(where, record, 'guard', str, 'text')
    if guard not in KINDS:
        raise BadRecord("'guard' is neither 'on' nor 'off': %r" % guard)
    events = _need(where, record, 'events', list, 'a list')
    if not events:
        raise BadRecord('the record has no events')
    return Timeline(
        _need(where, record, 'scenario', str, 'text'),
        guard,
        _need(where, record, 'release', str, 'text'),
        _need(where, record, 'verdict', str, 'text'),
        _need(where, record, 'safe', bool, 'true or false'),
        [_event(number, item) for number, item in enumerate(events, 1)])


def load(path):
    """Return the Timeline in a file that a scenario wrote.

    :raises BadRecord: it is not there, not JSON, or not a record
    """
    try:
        with open(path, encoding='utf-8') as stream:
            text = stream.read()
    except (OSError, UnicodeDecodeError) as exc:
        raise BadRecord('cannot read the record: %s' % exc)
    if not text.strip():
        raise BadRecord('the record is empty: the scenario wrote no events')
    try:
        record = json.loads(text, object_pairs_hook=collections.OrderedDict)
    except ValueError as exc:
        raise BadRecord('the record is not JSON: %s' % exc)
    return from_dict(record)


def dumps(timelines):
    """Return a list of runs as JSON, for programs."""
    return json.dumps([item.as_dict() for item in timelines], indent=2,
                      ensure_ascii=False)
