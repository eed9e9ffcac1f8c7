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


"""Says what the lab is doing."""

import sys
import threading
import time

_BEGUN = time.monotonic()
_lock = threading.Lock()
_listeners = []


def say(text):
    """Print a line with the seconds since the program began."""
    line = '%7.1f  %s' % (time.monotonic() - _BEGUN, text)
    with _lock:
        print(line, file=sys.stderr, flush=True)
        for listener in _listeners:
            listener(line)


class Transcript(object):
    """Collects what is said while it is entered."""

    def __init__(self):
        self.lines = []

    def __enter__(self):
        with _lock:
            _listeners.append(self.lines.append)
        return self

    def __exit__(self, *exc_info):
        with _lock:
            _listeners.remove(self.lines.append)

    def text(self):
        return '\n'.join(self.lines) + '\n'
