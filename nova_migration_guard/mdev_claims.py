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
"""The mediated devices that are claimed for guests on their way to a host.

Nova keeps them in memory only: when the destination's nova-compute starts
again before the guest is in its libvirt, a new guest gets the same device.
The driver's own dictionary is replaced by one that is on disk as well.
"""

import errno
import json
import os
import threading

from oslo_log import log as logging

from nova_migration_guard import durable
from nova_migration_guard import metrics

LOG = logging.getLogger(__name__)

#: Of the file. One of another version is set aside.
VERSION = 1

# No ending of the journal's: it is no entry of an operation.
_NAME = 'claimed-mdevs'


def _load(text, host):
    """Make {instance UUID: [mdev UUID]} of a file's text.

    :raises ValueError: when it is not that of this host
    """
    content = json.loads(text)
    if not isinstance(content, dict) or content.get('version') != VERSION:
        raise ValueError('it is not of version %d' % VERSION)
    if content.get('host') != host:
        raise ValueError('it is of host %s' % content.get('host'))
    claims = content.get('claims')
    if not isinstance(claims, dict) or not all(
            isinstance(mdevs, list) and
            all(isinstance(mdev, str) for mdev in mdevs)
            for mdevs in claims.values()):
        raise ValueError('its claims are of the wrong type')
    return claims


class MdevClaims(dict):
    """The driver's {instance UUID: [mdev UUID]}, which outlives the process.

    A driver sets an item when it claims, in the checks before a live
    migration, and pops it when the migration has ended or failed.

    :param folder: ``[migration_guard] journal_dir``
    :param host: the host's name, as Nova's records have it
    :param refusal: makes the exception that refuses a claim which cannot be
        written down: (reason); None where such a claim is only warned of
    """

    def __init__(self, folder, host, refusal=None):
        super(MdevClaims, self).__init__()
        self._host = host
        self._refusal = refusal
        self._folder = durable.folder_of(folder, host)
        self._path = os.path.join(self._folder, _NAME)
        self._lock = threading.Lock()

    def restore(self):
        """Take over what an earlier process has claimed.

        A file that cannot be trusted is set aside, and one that cannot be
        read is left alone; both are logged as errors.

        :returns: {instance UUID: [mdev UUID]} of what is new by that
        """
        try:
            try:
                found = _load(durable.read(self._path), self._host)
            except ValueError as e:
                LOG.error('%(path)s is no list of claimed mediated devices: '
                          '%(reason)s. It is kept as %(aside)s and otherwise '
                          'ignored.',
                          {'path': self._path, 'reason': e,
                           'aside': durable.set_aside(self._path)})
                return {}
        except OSError as e:
            if e.errno != errno.ENOENT:
                LOG.error('The claimed mediated devices cannot be read from '
                          '%s: %s', self._path, e.strerror or e)
            return {}
        self.update(found)
        return found

    def _write(self):
        with self._lock:
            durable.make_folder(self._folder)
            durable.write(self._path, json.dumps(
                {'version': VERSION, 'host': self._host,
                 'claims': dict(self)}))

    def __setitem__(self, uuid, mdevs):
        super(MdevClaims, self).__setitem__(uuid, list(mdevs))
        try:
            self._write()
        except OSError as e:
            reason = ('The claim of mediated devices cannot be written to '
                      '%s: %s' % (self._path, e.strerror or e))
            if self._refusal is not None:
                super(MdevClaims, self).pop(uuid, None)
                raise self._refusal(reason=reason)
            LOG.warning('%s. A new guest can get the same ones if '
                        'nova-compute starts again.', reason,
                        instance_uuid=uuid)

    def pop(self, uuid, *default):
        had = uuid in self
        mdevs = super(MdevClaims, self).pop(uuid, *default)
        if had:
            try:
                self._write()
            except OSError as e:
                # the next audit after a restart frees it
                LOG.warning('The end of a claim of mediated devices cannot '
                            'be written to %s: %s', self._path,
                            e.strerror or e, instance_uuid=uuid)
        return mdevs


def of_driver(driver):
    """The mediated devices that a driver has claimed for arriving guests.

    :param driver: a ``nova.virt.libvirt.driver.LibvirtDriver``
    :returns: {instance UUID: [mdev UUID]}, the driver's own; None on
        releases without live migration of such devices (to 28)
    """
    return getattr(driver, 'instance_claimed_mdevs', None)


def keep(driver, folder, host, refusal, only_report):
    """Let a driver's claims outlive its process, and restore earlier ones.

    :param driver: a ``nova.virt.libvirt.driver.LibvirtDriver`` that is being
        started, and has claimed nothing yet
    :param folder: see :class:`MdevClaims`
    :param host: see :class:`MdevClaims`
    :param refusal: see :class:`MdevClaims`
    :param only_report: whether to restore nothing, and only say what would be
    """
    if of_driver(driver) is None:
        return
    claims = MdevClaims(folder, host, refusal)
    for uuid, mdevs in claims.restore().items():
        if only_report:
            LOG.warning('The claim of the mediated devices %s is forgotten; '
                        'it would be kept.', ', '.join(mdevs),
                        instance_uuid=uuid)
        else:
            LOG.info('The claim of the mediated devices %s is kept.',
                     ', '.join(mdevs), instance_uuid=uuid)
            metrics.count('devices_kept_total', len(mdevs))
    if not only_report:
        driver.instance_claimed_mdevs = claims
