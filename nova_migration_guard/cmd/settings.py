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

"""Reads the files that nova-compute reads, without importing Nova.

The few options of Nova that the commands need are declared here once more,
under Nova's names and with Nova's defaults, which have been the same from
20.0 to 34.0.
"""

import importlib.util
import os
import socket

from oslo_config import cfg

from nova_migration_guard.cmd import errors
from nova_migration_guard import conf as guard_conf
from nova_migration_guard import plugin

#: The file names of its configuration go by these.
PROJECT = 'nova'
PROGRAM = 'nova-compute'


def _folder_of_nova():
    """Nova's ``pybasedir``: the folder that the package ``nova`` is in."""
    spec = importlib.util.find_spec('nova')
    if spec is None or not spec.submodule_search_locations:
        return os.getcwd()
    return os.path.dirname(os.path.abspath(
        list(spec.submodule_search_locations)[0]))


def make():
    """Make a configuration with what the commands need, before it is read.

    :returns: an ``oslo_config.cfg.ConfigOpts``
    """
    conf = cfg.ConfigOpts()
    conf.register_opts([
        cfg.StrOpt('host', default=socket.gethostname()),
        cfg.StrOpt('compute_driver'),
        cfg.StrOpt('pybasedir', default=_folder_of_nova()),
        cfg.StrOpt('state_path', default='$pybasedir'),
        cfg.StrOpt('instances_path', default='$state_path/instances')])
    conf.register_opts([
        cfg.StrOpt('virt_type', default='kvm'),
        cfg.StrOpt('connection_uri', default=''),
        cfg.StrOpt('live_migration_uri'),
        cfg.StrOpt('live_migration_scheme'),
        cfg.StrOpt('snapshots_directory',
                   default='$instances_path/snapshots')], group='libvirt')
    guard_conf.register_opts(conf)
    return conf


def default_folders():
    """The folders of configuration that nova-compute finds by itself."""
    find = getattr(cfg, 'find_config_dirs', None)
    return find(PROJECT, PROGRAM) if find else []


def load(files=None, folders=None):
    """Read the configuration of this host's nova-compute.

    :param files: the files to read, or None for those that nova-compute
        finds by itself
    :param folders: folders of such files, or None
    :returns: an ``oslo_config.cfg.ConfigOpts``
    :raises nova_migration_guard.cmd.errors.CommandError: when they cannot be
        read
    """
    conf = make()
    arguments = []
    for name, paths in (('file', files), ('dir', folders)):
        for path in paths or ():
            arguments += ['--config-' + name, path]
    try:
        conf(arguments, project=PROJECT, prog=PROGRAM)
        # the one option without a default in place of a bad value
        getattr(conf.migration_guard, plugin.ENABLED.dest)
    except cfg.ConfigFilesPermissionDeniedError as e:
        raise errors.NoRights(
            '%s Run the command as the user of nova-compute, or as root.' % e)
    except (cfg.Error, ValueError) as e:
        raise errors.CommandError('The configuration cannot be read: %s' % e)
    if not conf.config_file and not conf.config_dir:
        raise errors.CommandError(
            'No file was found that nova-compute reads. Name it with '
            '--config-file.')
    guard_conf.replace_bad_values(conf)
    return conf


def peer_uri(conf, peer):
    """The URI by which live migration reaches another host's libvirt.

    :param peer: the host's name
    """
    if conf.libvirt.live_migration_uri:
        return conf.libvirt.live_migration_uri % peer
    return 'qemu+%s://%s/system' % (
        conf.libvirt.live_migration_scheme or 'tcp', peer)


def libvirt_uri(conf):
    """The URI of the libvirt that nova-compute connects to."""
    default = {'lxc': 'lxc:///', 'parallels': 'parallels:///system'}.get(
        conf.libvirt.virt_type, 'qemu:///system')
    return conf.libvirt.connection_uri or default
