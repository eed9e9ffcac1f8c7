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

"""The entry point that nova-compute loads.

``os_vif.initialize()`` loads every entry point of the namespace ``os_vif``.
nova-compute calls it after its configuration and its logging are set up and
before it imports ComputeManager, on every release from 20.0 to 34.0; no other
Nova service does. That makes it the one place where a package beside Nova can
act in nova-compute alone, at the right moment, and can refuse the start.

While ``[migration_guard] enabled`` is false this module is the only one of
the package that is imported.
"""

from os_vif import exception
from os_vif.objects import host_info
from os_vif import plugin
from oslo_config import cfg
from oslo_log import log as logging

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

GROUP = 'migration_guard'

# Declared here, not in conf.py, because a disabled guard imports nothing else.
ENABLED = cfg.BoolOpt(
    'enabled',
    default=False,
    help="""
Guard this nova-compute's instances over its own restarts and audits.

Read once, when nova-compute starts. When it is false nothing of Nova is
patched. When it is true and the guard does not know this Nova, nova-compute
refuses to start: see ``unsupported_nova``.
""")


class BadSwitch(Exception):
    """``[migration_guard] enabled`` has a value that is no boolean."""


def is_enabled():
    """Tell whether the operator asked for the guard.

    :returns: the value of ``[migration_guard] enabled``
    :raises BadSwitch: when it cannot be read as a boolean. Neither value
        would be a safe guess: off would leave an operator without the guard
        that the file asks for.
    """
    CONF.register_opt(ENABLED, group=GROUP)
    try:
        return CONF[GROUP].enabled
    except (cfg.Error, ValueError) as e:
        raise BadSwitch('[%s] enabled: %s' % (GROUP, e))


def activate():
    """Apply the patch set to the Nova of this process, if it is enabled.

    Safe to call more than once: the patches are applied once for the life of
    the process, and each asks ``[migration_guard] enabled`` when it is called.

    :returns: True when the patch set is in place
    :raises BadSwitch: see :func:`is_enabled`
    :raises nova_migration_guard.compat.UnsupportedNova: when this Nova does
        not fit and ``[migration_guard] unsupported_nova`` is ``refuse``
    """
    if not is_enabled():
        LOG.debug('nova-migration-guard is installed and disabled.')
        return False
    from nova_migration_guard import activation
    return activation.activate(CONF)


class MigrationGuardPlugin(plugin.PluginBase):
    """An os-vif plugin in name only: it plugs no VIF of any kind."""

    @classmethod
    def load(cls, plugin_name):
        """Called by ``os_vif.initialize()`` in nova-compute.

        :param plugin_name: the entry point's name
        :returns: an instance of this class
        :raises Exception: as :func:`activate` does, which ends nova-compute
        """
        try:
            activate()
        except Exception as e:
            LOG.error('nova-migration-guard refuses to let nova-compute '
                      'start: %s', e)
            raise
        return super(MigrationGuardPlugin, cls).load(plugin_name)

    def describe(self):
        """Name no VIF type, so that os-vif never picks this plugin."""
        return host_info.HostPluginInfo(
            plugin_name=GROUP, vif_info=[])

    def plug(self, vif, instance_info):
        """Refuse: a VIF that names this plugin is a configuration error."""
        raise exception.PlugException(
            vif=vif, err='%s plugs no VIFs' % GROUP)

    def unplug(self, vif, instance_info):
        """Refuse: a VIF that names this plugin is a configuration error."""
        raise exception.UnplugException(
            vif=vif, err='%s plugs no VIFs' % GROUP)
