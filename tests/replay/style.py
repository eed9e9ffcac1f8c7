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

"""Colours and signs for a terminal, or plain ASCII where it has none."""

import os

_CODES = {
    'bold': '1',
    'dim': '2',
    'red': '31',
    'green': '32',
    'yellow': '33',
    'good': '1;30;42',
    'bad': '1;37;41',
}


_SIGNS = '\u2502\u2551\u2500\u253c\u2550\u00b7\u2192\u25b2'
_ASCII = ('|', '|', '-', '+', '=', '"', '->', '!')


class Style(object):
    """How to write for one stream.

    :ivar colour: whether to send colour codes
    :ivar bar, double, rule, cross, heavy: lines the stream can show
    :ivar same: stands for a cell that is as it was
    :ivar arrow: what '->' is shown as
    :ivar alert: stands before what is wrong
    """

    def __init__(self, colour=False, unicode=True):
        self.colour = colour
        (self.bar, self.double, self.rule, self.cross, self.heavy, self.same,
         self.arrow, self.alert) = _SIGNS if unicode else _ASCII

    def paint(self, text, *looks):
        """Return the text in these looks ('bold', 'red', 'bad' ...)."""
        if not self.colour or not looks or not text:
            return text
        codes = ';'.join(_CODES[look] for look in looks)
        return '\x1b[%sm%s\x1b[0m' % (codes, text)


def wants_colour(stream, environ=None):
    """Whether to send colour codes to a stream.

    Only to a terminal that knows them, and never where the user said no
    (https://no-color.org: NO_COLOR is set and not empty).
    """
    environ = os.environ if environ is None else environ
    if environ.get('NO_COLOR') or environ.get('TERM') == 'dumb':
        return False
    return stream.isatty()


def can_show(stream, signs):
    """Whether a stream's encoding has these signs."""
    try:
        signs.encode(stream.encoding or 'ascii')
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def for_stream(stream, environ=None):
    """Return the Style that fits a stream."""
    return Style(wants_colour(stream, environ), can_show(stream, _SIGNS))
