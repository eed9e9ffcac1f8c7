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

"""Whether the Nova of this process has what the guard patches and calls."""

import importlib
import inspect
import sys

from oslo_log import log as logging

from nova_migration_guard import compat

LOG = logging.getLogger(__name__)

DRIVER = 'libvirt.LibvirtDriver'


def _release():
    from nova import version
    return version.version_string()


def signature_of(function):
    """The names of a function's parameters, below decorators.

    :param function: a function, bound or not
    :returns: a tuple of names; without ``cls`` for a class method
    """
    return tuple(inspect.signature(function).parameters)


def find(seam):
    """The function that a seam names, as it is in this process now.

    :param seam: a :class:`~nova_migration_guard.compat.Seam`
    :raises nova_migration_guard.compat.UnsupportedNova: when the module or
        the attribute is not there
    """
    target = '%s:%s' % (seam.module, seam.name)
    try:
        found = importlib.import_module(seam.module)
    except ImportError as e:
        raise compat.UnsupportedNova(
            '%s cannot be imported: %s' % (target, e))
    for name in seam.name.split('.'):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise compat.UnsupportedNova('%s is not there' % target)
    return found


def _found_form(seam):
    """The form that a seam has in this process.

    :raises nova_migration_guard.compat.UnsupportedNova: when it is none that
        is known
    """
    signature = signature_of(find(seam))
    for form in seam.forms:
        if form.parameters == signature:
            return form
    raise compat.UnsupportedNova('%s:%s has the signature (%s), known: %s' % (
        seam.module, seam.name, ', '.join(signature),
        ' or '.join('(%s)' % ', '.join(form.parameters)
                    for form in seam.forms)))


def _say_what_is_new(release, series, found):
    """Log what of a Nova that fits was not tested as it is."""
    if release not in series.tested:
        LOG.info('nova %(release)s was not tested; %(tested)s of its series '
                 'was, and every seam is known.',
                 {'release': release, 'tested': ' and '.join(series.tested)})
    python = '%d.%d' % sys.version_info[:2]
    oldest, newest = map(compat.numbers_of, series.pythons)
    if not oldest <= compat.numbers_of(python) <= newest:
        LOG.info('nova %(release)s was tested on Python %(first)s to '
                 '%(last)s; this is %(python)s.',
                 {'release': release, 'first': series.pythons[0],
                  'last': series.pythons[1], 'python': python})
    changed = ['%s (%s)' % (seam.name, ', '.join(form.parameters))
               for seam, form in found
               if form != compat.form_of(seam, release)]
    if changed:
        LOG.info('nova %(release)s has seams in the form of another release, '
                 'as a backport makes them: %(seams)s',
                 {'release': release, 'seams': '; '.join(changed)})


def check(conf):
    """Decide whether the Nova of this process is one that can be guarded.

    :param conf: the process's ``oslo_config.cfg.ConfigOpts``, for the
        compute driver
    :returns: the release of Nova, for example '34.0.0'
    :raises nova_migration_guard.compat.UnsupportedNova: with every fault that
        was found
    """
    release = _release()
    faults, found, series = [], [], None
    try:
        series = compat.series_of(release)
    except compat.UnsupportedNova as e:
        faults.append(str(e))
    if conf.compute_driver != DRIVER:
        faults.append('compute_driver is %s, the guard knows %s only' % (
            conf.compute_driver, DRIVER))
    for seam in compat.SEAMS:
        try:
            found.append((seam, _found_form(seam)))
        except compat.UnsupportedNova as e:
            faults.append(str(e))
    if faults:
        raise compat.UnsupportedNova('nova %s does not fit: %s' % (
            release, '; '.join(faults)))
    _say_what_is_new(release, series, found)
    return release
