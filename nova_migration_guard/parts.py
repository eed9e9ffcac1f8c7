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

"""What the settler and the live operations of one nova-compute share."""

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Parts(object):
    """The parts that work on the instances of one nova-compute.

    :ivar host: a :class:`nova_migration_guard.nova_host.host.NovaHost`
    :ivar migrations: a
        :class:`nova_migration_guard.nova_host.live_migration.LiveMigrations`
    :ivar blocks: a
        :class:`nova_migration_guard.nova_host.block_operations.BlockOperations`
    :ivar actions: an
        :class:`nova_migration_guard.nova_host.actions.InstanceActions`
    :ivar jobs: a :class:`nova_migration_guard.libvirt_jobs.LibvirtJobs`
    :ivar journal: a :class:`nova_migration_guard.journal.Journal`
    :ivar words: a :class:`nova_migration_guard.words.Words`
    :ivar options: the ``[migration_guard]`` options
    """
    host: typing.Any
    migrations: typing.Any
    blocks: typing.Any
    actions: typing.Any
    jobs: typing.Any
    journal: typing.Any
    words: typing.Any
    options: typing.Any

    @property
    def enforces(self):
        """Whether verdicts are carried out, and not only logged."""
        return self.options.mode == 'enforce'
