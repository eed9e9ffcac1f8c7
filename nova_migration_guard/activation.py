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

"""From an enabled option to a patched nova-compute."""

from oslo_log import log as logging

from nova_migration_guard import compat
from nova_migration_guard import conf as guard_conf
from nova_migration_guard import gmr
from nova_migration_guard import metrics
from nova_migration_guard import patches
from nova_migration_guard import seams
from nova_migration_guard import version

LOG = logging.getLogger(__name__)


def activate(conf):
    """Check that this Nova fits, then apply the patch set, once.

    :param conf: the process's ``oslo_config.cfg.ConfigOpts``
    :returns: True when the patch set is in place, False when this Nova does
        not fit and ``[migration_guard] unsupported_nova`` is ``warn``
    :raises nova_migration_guard.compat.UnsupportedNova: when it does not fit
        and the option is ``refuse``
    """
    guard_conf.register_opts(conf)
    if patches.applied():
        return True
    guard_conf.replace_bad_values(conf)
    guard_conf.warn_of_unknown(conf)
    try:
        release = seams.check(conf)
    except compat.UnsupportedNova as e:
        if conf.migration_guard.unsupported_nova == 'refuse':
            raise
        LOG.warning('nova-migration-guard is enabled but NOT in force, since '
                    '[migration_guard] unsupported_nova = warn: %s', e)
        return False
    names = patches.apply()
    gmr.register()
    metrics.start(conf.migration_guard.mode)
    LOG.info('nova-migration-guard %(version)s guards nova %(release)s; '
             'mode: %(mode)s; patched: %(patches)s',
             {'version': version.version_string(), 'release': release,
              'mode': conf.migration_guard.mode, 'patches': ', '.join(names)})
    return True
