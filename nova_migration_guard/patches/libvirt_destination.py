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
"""Patches of ``nova.virt.libvirt.driver.LibvirtDriver`` as a destination.

They would be needless once Nova remembers, over a restart, what it has
claimed for guests that are on their way. Mediated devices migrate live from
29.0.0 on; nothing remembers them up to 34.
"""

from oslo_config import cfg

from nova import exception
from nova_migration_guard import mdev_claims
from nova_migration_guard import resource_guard

CONF = cfg.CONF
MODULE = 'nova.virt.libvirt.driver'


def _active():
    return CONF.migration_guard.enabled and CONF.migration_guard.resource_guard


def _init_host(wrapped, driver, args, kwargs):
    """Restore the claims before anything is started or audited."""
    def host_of(host):
        return host

    if _active():
        options = CONF.migration_guard
        # another destination is tried after this error
        refusal = (exception.MigrationPreCheckError
                   if options.journal_required else None)
        mdev_claims.keep(driver, options.journal_dir,
                         host_of(*args, **kwargs), refusal,
                         resource_guard.only_reports())
    return wrapped(*args, **kwargs)


def _pre_live_migration(wrapped, driver, args, kwargs):
    """Remember that a guest is coming, for which nothing need be claimed."""
    def instance_of(context, instance, *args, **kwargs):
        return instance

    # a driver that no ComputeManager has made has no tracker
    manager = getattr(driver.virtapi, '_compute', None)
    if _active() and manager is not None:
        resource_guard.expect(manager.rt, instance_of(*args, **kwargs).uuid)
    return wrapped(*args, **kwargs)


PATCHES = {
    'LibvirtDriver.init_host': _init_host,
    'LibvirtDriver.pre_live_migration': _pre_live_migration,
}
