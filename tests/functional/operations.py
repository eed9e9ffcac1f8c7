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

"""What users and operators ask of a cloud."""

import fixtures

from nova.tests.functional.api import client as api_client

from tests.functional import releases
from tests.functional import waiting


class Operations(object):
    """A part of :class:`~tests.functional.cloud.CloudTestCase`."""

    def boot(self, host, flavor=None, networks='none', name='guest'):
        """Create a server on a host, and see it running.

        :param flavor: the flavor's ID, or None for the smallest
        :param networks: as in the API
        :returns: the server as the API shows it
        """
        server = self.boot_any(host, flavor, networks, name)
        self.assertEqual('ACTIVE', server['status'], server.get('fault'))
        return server

    def boot_any(self, host, flavor=None, networks='none', name='guest'):
        """The same, for a server that may end in ERROR as well."""
        server = self.api.post_server({'server': {
            'name': name, 'imageRef': releases.IMAGE, 'host': host,
            'flavorRef': flavor or self.api.get_flavors()[0]['id'],
            'networks': networks}})
        return self.wait_for_server(
            server, lambda s: s['status'] in ('ACTIVE', 'ERROR') and
            not s['OS-EXT-STS:task_state'])

    def create_flavor(self, extra_specs=None, disk=1, name='small', ram=512):
        """Make a small flavor.

        :param disk: GB
        :param name: its name and its ID
        :param ram: MB
        :returns: its ID
        """
        flavor = self.api.post_flavor({'flavor': {
            'name': name, 'ram': ram, 'vcpus': 1, 'disk': disk,
            'id': name, 'OS-FLV-EXT-DATA:ephemeral': 0}})
        if extra_specs:
            self.api.post_extra_spec(flavor['id'],
                                     {'extra_specs': extra_specs})
        return flavor['id']

    def create_sriov_port(self, number):
        """Make a port that wants a virtual function.

        :param number: which one; every number is another port
        :returns: the port's ID
        """
        return self.neutron.create_port({'port': {
            'id': '5460ee0c-ffbb-4e45-8d58-37bfceabd%03d' % number,
            'network_id': self.neutron.network_4['id'],
            'mac_address': '52:54:00:1e:59:%02x' % number,
            'fixed_ips': [{'ip_address': '192.168.4.%d' % (100 + number),
                           'subnet_id': self.neutron.subnet_4['id']}],
            'tenant_id': self.neutron.tenant_id, 'admin_state_up': True,
            'resource_request': {}}})['port']['id']

    def attach_volume(self, server):
        """Attach a volume to a running server.

        :returns: the volume's ID
        """
        volume = releases.CinderFixture.IMAGE_BACKED_VOL
        self.api.post_server_volume(
            server['id'], {'volumeAttachment': {'volumeId': volume}})
        self.wait_until(
            lambda: [volume] == [attachment['volumeId'] for attachment in
                                 self.api.get_server_volumes(server['id'])] and
            self.hypervisor(self.nova_says(server).host).domains[
                server['id']].has_volume(volume), 'the volume is attached')
        return volume

    def live_migrate(self, server, host):
        """Ask for a live migration, with the disks that are not shared."""
        self.api.post_server_action(server['id'], {'os-migrateLive': {
            'host': host, 'block_migration': 'auto'}})

    def act(self, server, action, arguments=None):
        """Ask for a server action."""
        self.api.post_server_action(server['id'], {action: arguments})

    def refused(self, request, *args):
        """Make a request of the API, and say whether it answers 409."""
        try:
            request(*args)
        except api_client.OpenStackApiException as e:
            if e.response.status_code != 409:
                raise
            return True
        return False

    def delete(self, server):
        """Delete a server, and see it gone from the API."""
        self.api.delete_server(server['id'])

        def gone():
            try:
                self.api.get_server(server['id'])
            except api_client.OpenStackApiNotFoundException:
                return True
            return False
        self.wait_until(gone, 'the server is deleted')

    def evacuate(self, server, host):
        """Rebuild a server of a dead host elsewhere, running."""
        # from 2.95 an evacuated server is left stopped
        with fixtures.MockPatchObject(self.api, 'microversion', '2.79'):
            self.api.post_server_action(server['id'],
                                        {'evacuate': {'host': host}})

    def begin_migration(self, server, host, percent=40):
        """Ask for a live migration, and see it copy.

        :param percent: how much has been copied when this returns
        :returns: the :class:`~tests.functional.migration_job.MigrationJob`
        """
        self.live_migrate(server, host)
        job = self.wait_for_job(server)
        self.wait_until(lambda: self.migrations(server)[-1].status ==
                        'running', 'the migration is running')
        job.copied(percent)
        return job

    # ---- waiting

    def wait_until(self, predicate, what, timeout=waiting.TIMEOUT):
        """See :func:`tests.functional.waiting.wait_until`."""
        return waiting.wait_until(predicate, what, timeout)

    def wait_for_server(self, server, predicate, timeout=waiting.TIMEOUT):
        """Wait until a server is as it should be.

        :param predicate: called with the server as the API shows it
        :returns: that
        """
        seen = {}

        def look():
            seen.update(self.api.get_server(server['id']))
            return predicate(seen)
        self.wait_until(look, lambda: 'the server is %s/%s on %s, %s' % (
            seen['status'], seen['OS-EXT-STS:task_state'],
            seen['OS-EXT-SRV-ATTR:host'], seen.get('fault')), timeout)
        return seen

    def wait_for_job(self, server, timeout=waiting.TIMEOUT):
        """Wait until libvirt migrates a server's guest.

        :returns: the :class:`~tests.functional.migration_job.MigrationJob`
        """
        def what():
            return 'libvirt migrates: %s, %s' % (
                self.nova_says(server), self.migration_statuses(server))
        return self.wait_until(
            lambda: self.world.running_job(server['id']), what, timeout)
