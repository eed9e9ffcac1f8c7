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


"""The configuration files of the services."""

import configparser
import shutil

from tests.lab import broker
from tests.lab import database
from tests.lab import identity
from tests.lab import settings as lab_settings

#: Of every service; its process writes to a file of its own.
LOGGING = {'debug': True, 'use_stderr': True, 'log_options': False}
#: In the light form, what a paste pipeline has for Keystone's middleware is
#: replaced by this.
OPEN_AUTH = 'open_auth:filter_factory'


def write(path, *parts):
    """Write an INI file.

    :param path: ``pathlib.Path``
    :param parts: {section: {option: value}}, later ones win
    """
    parser = _parser()
    for part in parts:
        for section, options in part.items():
            # configparser treats DEFAULT apart: it needs no section
            if section != 'DEFAULT' and not parser.has_section(section):
                parser.add_section(section)
            for option, value in options.items():
                if isinstance(value, bool):
                    value = str(value).lower()
                parser.set(section, option, str(value))
    with path.open('w') as f:
        parser.write(f)


def write_paste(source, target, settings):
    """Write a paste configuration; in the light form it lets everyone in.

    :param source: ``pathlib.Path`` of the one that the service comes with
    :param target: ``pathlib.Path``
    """
    if settings.full:
        shutil.copy(str(source), str(target))
        return
    parser = _parser()
    with source.open() as f:
        parser.read_file(f)
    parser.set('filter:authtoken', 'paste.filter_factory', OPEN_AUTH)
    with target.open('w') as f:
        parser.write(f)


def _parser():
    parser = configparser.ConfigParser(
        interpolation=None, default_section='DEFAULT', strict=False)
    parser.optionxform = str
    return parser


def _endpoint(settings, port):
    """How Nova reaches another service."""
    if settings.full:
        return identity.credentials(settings, 'nova')
    url = settings.url(port)
    return {'auth_type': 'admin_token', 'endpoint': url,
            'endpoint_override': url, 'token': lab_settings.TOKEN}


def nova(settings, venv, host):
    """What all Nova services have in common.

    :param settings: of the lab
    :param venv: folder of Nova's virtualenv
    :param host: name of the host on which the service runs
    """
    compute = host in lab_settings.COMPUTE_HOSTS
    state = settings.compute_path if compute else settings.storage(host)
    return {
        'DEFAULT': {
            **LOGGING,
            'host': host,
            'my_ip': lab_settings.ADDRESSES[host],
            'state_path': state,
            'transport_url': broker.URL,
            # how soon the lab sees that a service is up
            'report_interval': 3,
        },
        'oslo_concurrency': {'lock_path': state / 'locks'},
        'oslo_messaging_notifications': {'driver': 'noop'},
        'placement': _endpoint(settings, lab_settings.PLACEMENT_PORT),
        'neutron': _endpoint(settings, lab_settings.NEUTRON_PORT),
        'glance': {'endpoint_override': settings.url(
            lab_settings.GLANCE_PORT)},
        # without these, privsep asks sudo, which a host of the lab has not
        'nova_sys_admin': {
            'helper_command': venv / 'bin' / 'privsep-helper'},
        'privsep_osbrick': {
            'helper_command': venv / 'bin' / 'privsep-helper'},
        'vnc': {'enabled': False},
    }


def nova_full(settings, venv):
    """What all Nova services have in the full form besides."""
    own = identity.credentials(settings, 'nova')
    cinder = dict(own, os_region_name=own['region_name'],
                  catalog_info='block-storage::publicURL')
    del cinder['region_name']
    return dict(
        identity.middleware(settings, 'nova'),
        cinder=cinder,
        glance=own,
        service_user=dict(own, send_service_user_token=True),
        vif_plug_ovs_privileged={
            'helper_command': venv / 'bin' / 'privsep-helper'},
        # with the switch in user space Neutron does not have the device made
        # before QEMU starts, and never says that it is there
        compute={'live_migration_wait_for_vif_plug': False})


def nova_control(settings):
    """What nova-api, nova-conductor and nova-scheduler need besides."""
    return {
        'wsgi': {'api_paste_config': settings.etc / 'api-paste.ini'},
        'database': {'connection': database.url('nova')},
        'api_database': {'connection': database.url('nova_api')},
        'conductor': {'workers': 1},
        'scheduler': {'workers': 1},
        'DEFAULT': {'osapi_compute_workers': 1},
    }


def nova_compute(settings, host):
    """What nova-compute needs besides."""
    return {
        'DEFAULT': {
            'compute_driver': 'libvirt.LibvirtDriver',
            'ram_allocation_ratio': 1.0,
            'reserved_host_memory_mb': 512,
            'sync_power_state_interval': 20,
        },
        'libvirt': {
            'virt_type': settings.virt_type,
            'cpu_mode': 'none',
            'images_type': 'raw',
            'live_migration_uri': 'qemu+tcp://%s/system',
            'live_migration_inbound_addr': lab_settings.ADDRESSES[host],
            'live_migration_bandwidth': settings.bandwidth,
        },
        'workarounds': {'skip_cpu_compare_on_dest': True},
        'migration_guard': {'enabled': settings.guard},
    }


def placement(settings):
    parts = {
        'api': {'auth_strategy': 'keystone' if settings.full else 'noauth2'},
        'placement_database': {'connection': database.url('placement')},
        'oslo_policy': {'enforce_scope': False},
    }
    if settings.full:
        parts.update(identity.middleware(settings, 'placement'))
    return parts


def glance(settings):
    store = settings.storage('glance')
    parts = {
        'DEFAULT': {'enabled_backends': 'files:file'},
        'database': {'connection': database.url('glance')},
        'paste_deploy': {
            'flavor': 'keystone',
            'config_file': settings.etc / 'glance' / 'glance-api-paste.ini'},
        'glance_store': {'default_backend': 'files'},
        'files': {'filesystem_store_datadir': store / 'images'},
        'os_glance_staging_store': {
            'filesystem_store_datadir': store / 'staging'},
        'os_glance_tasks_store': {
            'filesystem_store_datadir': store / 'tasks'},
        'oslo_policy': {'enforce_scope': False},
    }
    if settings.full:
        parts.update(identity.middleware(settings, 'glance'))
    return parts
