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

"""Asks another host for a sign of life: its nova-compute, or its libvirt.

Over Nova's RPC, with the transport of nova.conf, and over the URI of live
migration; no credentials of the API are needed.
"""

import oslo_messaging

from nova_migration_guard.cmd import settings
from nova_migration_guard import workers

# Nova's own: the exchange, and the interface that each of its services has.
EXCHANGE = 'nova'
TOPIC = 'compute'
NAMESPACE = 'baseapi'
VERSION = '1.0'


def ping(conf, peer):
    """Ask a nova-compute. Raises nothing.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param peer: the host's name
    :returns: why there is no answer, or None
    """
    try:
        oslo_messaging.set_transport_defaults(EXCHANGE)
        transport = oslo_messaging.get_rpc_transport(conf)
        target = oslo_messaging.Target(
            topic=TOPIC, server=peer, namespace=NAMESPACE, version=VERSION)
        # the function came with 14.1, and the class is deprecated since
        make = getattr(oslo_messaging, 'get_rpc_client',
                       oslo_messaging.RPCClient)
        make(transport, target, timeout=(
            conf.migration_guard.call_timeout)).call({}, 'ping', arg='')
    except Exception as e:
        return str(e) or type(e).__name__
    return None


def ping_libvirt(conf, peer):
    """Ask a libvirt. Raises nothing.

    :param conf: an ``oslo_config.cfg.ConfigOpts``
    :param peer: the host's name
    :returns: why there is no answer, or None
    """
    def ask():
        import libvirt
        libvirt.openReadOnly(settings.peer_uri(conf, peer)).close()

    try:
        workers.Workers(1).call(
            peer, conf.migration_guard.call_timeout, ask)
    except Exception as e:
        return str(e) or type(e).__name__
    return None
