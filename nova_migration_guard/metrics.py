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

"""Counters for Prometheus, in a file of node-exporter's textfile collector.

They count from the start of nova-compute, as Prometheus expects of counters.
The file is replaced as a whole whenever a number changes, and is readable for
everyone: it has no names of instances.
"""

import collections
import os
import threading
import typing

from oslo_config import cfg
from oslo_log import log as logging

from nova_migration_guard import version

CONF = cfg.CONF
LOG = logging.getLogger(__name__)

_PREFIX = 'nova_migration_guard_'

#: {name: (type, help)}
METRICS = {
    'info': ('gauge', 'The release and the mode of the guard.'),
    'held': ('gauge', 'Instances that are held now.'),
    'settled_total': ('counter', 'Instances that were settled, by verdict.'),
    'reported_total': ('counter', 'Verdicts that report mode has only '
                                  'logged.'),
    'abort_timeouts_total': ('counter', 'Jobs that were still there '
                                        'abort_timeout after an abort.'),
    'words_refused_total': ('counter', "Operators' words that were refused."),
    'audits_corrected_total': ('counter', 'Resource audits that had missed '
                                          'an instance.'),
    'devices_kept_total': ('counter', 'Devices that a resource audit or a '
                                      'restart would have given away.'),
}

_lock = threading.Lock()
_values: typing.Dict[str, typing.Dict[str, float]] = (
    collections.defaultdict(dict))
_failed: typing.Set[str] = set()


def _labels(labels):
    return ','.join('%s="%s"' % (name, str(labels[name]).replace(
        '\\', r'\\').replace('"', r'\"')) for name in sorted(labels))


def count(name, number=1, **labels):
    """Add to a counter. Raises nothing.

    :param name: one of :data:`METRICS`, a counter
    :param number: how much
    """
    key = _labels(labels)
    with _lock:
        _values[name][key] = _values[name].get(key, 0) + number
        _write()


def gauge(name, number, **labels):
    """Say what a number is now. Raises nothing.

    :param name: one of :data:`METRICS`, a gauge
    :param number: which
    """
    with _lock:
        _values[name] = {_labels(labels): number}
        _write()


def start(mode):
    """Begin to count, and let each counter without labels be seen as 0.

    :param mode: ``[migration_guard] mode``
    """
    for name in METRICS:
        if name not in ('info', 'settled_total', 'reported_total'):
            _values[name].setdefault('', 0)
    gauge('info', 1, mode=mode, version=version.version_string())


def text():
    """The numbers in Prometheus's text format."""
    lines = []
    for name, (kind, what) in METRICS.items():
        if name in _values:
            lines.append('# HELP %s%s %s' % (_PREFIX, name, what))
            lines.append('# TYPE %s%s %s' % (_PREFIX, name, kind))
            lines.extend('%s%s%s %s' % (
                _PREFIX, name, '{%s}' % labels if labels else '', value)
                for labels, value in sorted(_values[name].items()))
    return '\n'.join(lines) + '\n'


def _write():
    try:
        path = CONF.migration_guard.metrics_file
    except cfg.NoSuchOptError:
        # a part of the guard is used without the whole
        return
    if not path:
        return
    # the collector reads *.prom only
    temporary = path + '.new'
    try:
        with open(temporary, 'w') as stream:
            stream.write(text())
        os.chmod(temporary, 0o644)
        os.rename(temporary, path)
        _failed.discard(path)
    except OSError as e:
        if path not in _failed:
            _failed.add(path)
            LOG.warning('The numbers for Prometheus cannot be written to '
                        '%s: %s', path, e.strerror or e)
