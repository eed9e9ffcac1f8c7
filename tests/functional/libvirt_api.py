# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""libvirt's numbers that the model uses, by libvirt's names."""

import fixtures

from tests.functional import releases

# virDomainState
RUNNING = 1
PAUSED = 3
SHUTDOWN = 4
SHUTOFF = 5

STATE_NAMES = {RUNNING: 'running', PAUSED: 'paused', SHUTDOWN: 'shutdown',
               SHUTOFF: 'shutoff'}

# virDomainRunningReason
RUNNING_BOOTED = 1
RUNNING_MIGRATED = 2
RUNNING_UNPAUSED = 5
RUNNING_MIGRATION_CANCELED = 6
RUNNING_POSTCOPY = 10
RUNNING_POSTCOPY_FAILED = 11

# virDomainPausedReason
PAUSED_USER = 1
PAUSED_MIGRATION = 2
PAUSED_POSTCOPY = 12
PAUSED_POSTCOPY_FAILED = 13

# virDomainShutoffReason
SHUTOFF_UNKNOWN = 0
SHUTOFF_SHUTDOWN = 1
SHUTOFF_DESTROYED = 2
SHUTOFF_MIGRATED = 4

# virDomainJobType
JOB_NONE = 0
JOB_UNBOUNDED = 2
JOB_CANCELLED = 5

# virDomainJobOperation
OPERATION_MIGRATION_OUT = 5

# virDomainBlockJobType
BLOCK_JOB_PULL = 1
BLOCK_JOB_COPY = 2
BLOCK_JOB_COMMIT = 3

# virDomainBlockRebaseFlags, virDomainBlockJobAbortFlags
BLOCK_REBASE_COPY = 8
BLOCK_JOB_ABORT_PIVOT = 2

# virDomainMigrateFlags
MIGRATE_PERSIST_DEST = 8
MIGRATE_UNDEFINE_SOURCE = 16
MIGRATE_NON_SHARED_DISK = 64
MIGRATE_NON_SHARED_INC = 128

# virErrorNumber
ERR_INVALID_ARG = 8
ERR_OPERATION_FAILED = 9
ERR_SYSTEM_ERROR = 38
ERR_NO_DOMAIN = 42
ERR_OPERATION_INVALID = 55
ERR_OPERATION_TIMEOUT = 68
ERR_OPERATION_ABORTED = 78
ERR_OPERATION_UNSUPPORTED = 84
ERR_DEVICE_MISSING = 99

# virErrorDomain
FROM_QEMU = 10
FROM_RPC = 7


def error(code, message, domain=FROM_QEMU):
    """Make the libvirtError that Nova's fake binding would raise."""
    return releases.fakelibvirt.make_libvirtError(
        releases.fakelibvirt.libvirtError, message, error_code=code,
        error_domain=domain, error_message=message)


def no_domain(uuid):
    """Make the error for a domain that is not there."""
    return error(ERR_NO_DOMAIN, "Domain not found: no domain with matching "
                 "uuid '%s'" % uuid)


def unavailable():
    """Make the error for a libvirtd that does not answer."""
    return error(ERR_SYSTEM_ERROR,
                 'Cannot recv data: Connection reset by peer', FROM_RPC)


class RealNumbers(fixtures.Fixture):
    """Give Nova's fake binding libvirt's own error numbers.

    It has others of its own for some, and what knows libvirt's protocol and
    not this binding would take one error for another.
    """

    NUMBERS = {
        'VIR_ERR_INTERNAL_ERROR': 1,
        'VIR_ERR_OPERATION_FAILED': ERR_OPERATION_FAILED,
        'VIR_ERR_XML_DETAIL': 35,
        'VIR_ERR_SYSTEM_ERROR': ERR_SYSTEM_ERROR,
        'VIR_ERR_NO_DOMAIN': ERR_NO_DOMAIN,
        'VIR_ERR_NO_NODE_DEVICE': 53,
        'VIR_ERR_NO_NWFILTER': 62,
        'VIR_ERR_CONFIG_UNSUPPORTED': 67,
        'VIR_FROM_RPC': FROM_RPC,
        'VIR_FROM_QEMU': FROM_QEMU,
        'VIR_FROM_DOMAIN': 20,
        'VIR_FROM_REMOTE': 13,
        'VIR_FROM_NODEDEV': 22,
    }

    def _setUp(self):
        for name, number in self.NUMBERS.items():
            if hasattr(releases.fakelibvirt, name):
                self.useFixture(fixtures.MockPatchObject(
                    releases.fakelibvirt, name, number))
