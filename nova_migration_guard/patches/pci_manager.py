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

"""Patch of ``nova.pci.manager.PciDevTracker``.

It runs inside a claim, which holds the ``compute_resources`` lock. It would be
needless once ``claim_instance`` adds to the devices that are claimed for an
instance. Until 30 no move claims twice; from 31.0.0 a live migration does,
for the devices that the flavor asks for and for those of the ports.
"""

from oslo_config import cfg

from nova_migration_guard import resource_guard

CONF = cfg.CONF
MODULE = 'nova.pci.manager'


def _claim_instance(wrapped, devices, args, kwargs):
    """Keep what was claimed for an instance for other requests."""
    def claimant_of(context, pci_requests, instance_numa_topology):
        return pci_requests.instance_uuid

    guard = CONF.migration_guard
    if not (guard.enabled and guard.resource_guard):
        return wrapped(*args, **kwargs)
    uuid = claimant_of(*args, **kwargs)
    before = list(devices.claims.get(uuid, ()))
    claimed = wrapped(*args, **kwargs)
    if before and claimed:
        resource_guard.keep_claims(devices, uuid, before, claimed)
    return claimed


PATCHES = {'PciDevTracker.claim_instance': _claim_instance}
