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

"""Understands the statements of a host well enough to draw them.

A statement is a thing and how it is: 'guest running', 'second disk complete',
'job -> host-b 40 %', 'VF 0000:81:00.1 of first', 'nova-compute down'.
"""

import collections
import re

#: One statement. thing: what it is of ('guest', 'second disk', 'VF
#: 0000:81:00.1', 'job'); state: how it is; tone: name of a look.
Facet = collections.namedtuple('Facet', ['thing', 'state', 'tone'])

#: A job that libvirt runs. percent: '40 %' or ''.
Job = collections.namedtuple('Job', ['target', 'percent'])

_JOB = re.compile(r'^job -> (\S+)\s*(\d+ ?%)?')
_BODY = re.compile(r'^((?:\S+ )?(?:guest|disk)) (.+)$')
_TONES = [
    (re.compile(r'\b(deleted|lost|corrupt|of .* and)\b'), 'bad'),
    (re.compile(r'\b(running|complete|of)\b'), 'full'),
    (re.compile(r'\b(paused|partial|empty)\b'), 'half'),
]


def job(statement):
    """Return the Job that a statement tells of, or None."""
    found = _JOB.match(statement)
    return Job(found.group(1), found.group(2) or '') if found else None


def facet(statement):
    """Return the Facet of a statement."""
    words = statement.split()
    if job(statement):
        return Facet('job', ' '.join(words[1:]), 'busy')
    if words[0] == 'no':
        return Facet(' '.join(words[1:]), '', 'none')
    body = _BODY.match(statement)
    if body:
        thing, state = body.groups()
    else:
        # a device has an address: 'VF 0000:81:00.1'
        count = 2 if len(words) > 2 and re.search(r'\d', words[1]) else 1
        thing, state = ' '.join(words[:count]), ' '.join(words[count:])
    for pattern, tone in _TONES:
        if pattern.search(state):
            return Facet(thing, state, tone)
    return Facet(thing, state, 'plain')


def is_body(thing):
    """Whether a thing is a guest or a disk, and not something of theirs."""
    return thing.split()[-1] in ('guest', 'disk')


def gone(before, now):
    """Return what of a host is there no more, as statements.

    :param before: statements of the line before
    :param now: statements of this line
    """
    left = {facet(statement).thing for statement in now}
    out = []
    for statement in before:
        thing = facet(statement).thing
        if thing in left:
            continue
        left.add(thing)
        if thing == 'nova-compute':
            out.append('nova-compute up')
        elif thing == 'job' or is_body(thing):
            out.append('no ' + thing)
        else:
            out.append(thing + ' not in use')
    return out
