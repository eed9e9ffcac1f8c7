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

"""Where a guest is, asked of the other host of its migration.

Three sources: the other host's nova-compute, which needs nothing of the guard
there; its libvirt, where the operator allows it; and, for the one question
whether the host can be reached at all, its network.
"""

import socket

from oslo_log import log as logging

from nova_migration_guard import facts
from nova_migration_guard import libvirt_jobs

LOG = logging.getLogger(__name__)

Peer = facts.Peer


class Peers(object):
    """The other hosts of one host's migrations.

    :param host: a :class:`nova_migration_guard.nova_host.host.NovaHost`
    :param asks: the :class:`~nova_migration_guard.workers.Workers` in which
        the questions are asked
    :param options: the ``[migration_guard]`` options
    """

    def __init__(self, host, asks, options):
        self._host = host
        self._asks = asks
        self._options = options

    def where(self, instance, peer):
        """Ask another host about a guest. Raises nothing.

        :param instance: a ``nova.objects.Instance``
        :param peer: the other host's name, as Nova's records have it
        :returns: (:class:`nova_migration_guard.facts.Peer`, what the host was
            asked over or why it does not say)
        """
        answer, said = self._asked(
            'nova-compute', self._ask_compute, instance, peer)
        if not (self._options.peer_libvirt and
                answer in (Peer.THERE, Peer.UNKNOWN)):
            return answer, said
        closer, also_said = self._asked(
            'libvirt', self._ask_libvirt, instance, peer)
        if closer is Peer.UNKNOWN:
            return answer, '%s; %s' % (said, also_said)
        return closer, also_said

    def _asked(self, whom, ask, instance, peer):
        said = '%s on %s' % (whom, peer)
        try:
            return self._asks.call(
                (whom, instance.uuid), self._options.call_timeout, ask,
                instance, peer), said
        except Exception as e:
            said = '%s: %s' % (said, e)
            LOG.info('It is not known whether the guest is there: %s', said,
                     instance=instance)
            return Peer.UNKNOWN, said

    def _ask_compute(self, instance, peer):
        if not self._host.has_domain_at(instance, peer):
            return Peer.ABSENT
        if self._host.runs_at(instance, peer):
            return Peer.RUNS
        return Peer.THERE

    def _ask_libvirt(self, instance, peer):
        connection = self._host.connect_peer(peer)
        try:
            domain = connection.lookupByUUIDString(instance.uuid)
            state, reason = domain.state(0)[:2]
        except self._host.libvirt_error() as e:
            if e.get_error_code() != libvirt_jobs.NO_DOMAIN:
                raise
            return Peer.ABSENT
        finally:
            connection.close()
        states = libvirt_jobs.State
        if state == states.PAUSED and reason in (
                libvirt_jobs.PausedReason.MIGRATION,
                libvirt_jobs.PausedReason.POSTCOPY_FAILED):
            return Peer.THERE
        if state in (states.SHUTOFF, states.CRASHED):
            return Peer.OFF
        return Peer.RUNS

    def reachable(self, peer):
        """Tell whether another host answers on the network at all.

        A port that refuses a connection is an answer, too.

        :param peer: the other host's name or address
        :returns: whether it answered within ``call_timeout``
        """
        try:
            socket.create_connection(
                (peer, self._host.libvirt_port()),
                self._options.call_timeout).close()
        except ConnectionRefusedError:
            return True
        except (OSError, ValueError) as e:
            LOG.info('%(peer)s cannot be reached: %(error)s',
                     {'peer': peer, 'error': e})
            return False
        return True
