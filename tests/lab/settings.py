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


"""What a lab is: a release of Nova, a folder, hosts with addresses."""

import os
import pathlib
import re

#: The checkout.
TOP = pathlib.Path(__file__).resolve().parent.parent.parent
#: Programs of the lab that run with other interpreters, inside the hosts.
PROGRAMS = pathlib.Path(__file__).resolve().parent / 'programs'

RELEASE = '34.0.0'
ROOT = '/var/tmp/nova-lab'  # noqa: S108

CONTROLLER = 'controller'
COMPUTE_HOSTS = ('host-a', 'host-b', 'host-c')
#: The network exists inside the lab's namespaces only.
ADDRESSES = {
    CONTROLLER: '10.31.0.1',
    'host-a': '10.31.0.11',
    'host-b': '10.31.0.12',
    'host-c': '10.31.0.13',
}
PREFIX_LENGTH = 24

#: In the light form, Placement's noauth2 takes the bearer of this one, and no
#: other, for an administrator. The other services let everyone in.
TOKEN = 'admin'  # noqa: S105

NOVA_PORT = 8774
PLACEMENT_PORT = 8778
GLANCE_PORT = 9292
NEUTRON_PORT = 9696
KEYSTONE_PORT = 5000
CINDER_PORT = 8776

#: Without Keystone, Neutron and Cinder; and with them.
LIGHT = 'light'
FULL = 'full'
FORMS = (LIGHT, FULL)

#: What the name of a lab in the full form has at its end.
_FULL_SUFFIX = '-' + FULL
_NAME = re.compile(r'([\d.]+)(%s)?$' % _FULL_SUFFIX)

#: Shorter times than the defaults, so that tests need not wait for them. The
#: first ones: at SIGTERM, 34 waits for the live migrations that it controls.
QUICK_OPTIONS = {
    'DEFAULT': {'graceful_shutdown_timeout': 20,
                'manager_shutdown_timeout': 10},
    'migration_guard': {'abort_timeout': 10, 'startup_timeout': 20,
                        'call_timeout': 5, 'settle_interval': 5}}


class Settings(object):
    """Of one lab.

    :param release: of Nova, one of constraints/releases.cfg
    :param root: folder for virtualenvs, state and logs; not in the checkout
    :param guard: whether nova-compute has the guard enabled
    :param virt_type: 'kvm' or 'qemu'; None for the faster one that works,
        which :meth:`tests.lab.deployment.Deployment.up` finds out
    :param bandwidth: MiB/s of a live migration. The default keeps a block
        migration in flight for a quarter of an hour, until
        :meth:`tests.lab.lab.Lab.throttle` lets it go on
    :param compute_options: {section: {option: value}}, more for nova-compute
    :param form: LIGHT or FULL
    """

    def __init__(self, release=RELEASE, root=ROOT, guard=True, virt_type=None,
                 bandwidth=1, compute_options=None, form=LIGHT):
        self.release = release
        self.root = pathlib.Path(root).absolute()
        if self.root == TOP or TOP in self.root.parents:
            raise ValueError('the lab must not be in the checkout: %s' %
                             self.root)
        if form not in FORMS:
            raise ValueError('the form of a lab is %s, not %s' % (
                ' or '.join(FORMS), form))
        self.form = form
        self.guard = guard
        self.virt_type = virt_type
        self.bandwidth = bandwidth
        self.compute_options = compute_options or {}

    @classmethod
    def from_environ(cls, environ=os.environ, **more):
        """Settings from ``NOVA_LAB_RELEASE``, ``NOVA_LAB_ROOT`` and so on."""
        for name in ('release', 'root', 'virt_type', 'form'):
            value = environ.get('NOVA_LAB_' + name.upper())
            if value:
                more.setdefault(name, value)
        return cls(**more)

    @property
    def version(self):
        """The release as a tuple that begins (34, 0)."""
        return tuple(int(part) for part in self.release.split('.'))

    @property
    def full(self):
        return self.form == FULL

    @property
    def name(self):
        """What tells this lab from others in the same root."""
        return self.release + (_FULL_SUFFIX if self.full else '')

    @property
    def state(self):
        """Folder of everything that one bring-up makes."""
        return self.root / self.name

    @property
    def etc(self):
        return self.state / 'etc'

    @property
    def logs(self):
        """Folder of the logs of all services."""
        return self.state / 'log'

    @property
    def compute_path(self):
        """state_path of nova-compute: the same path on every host.

        Each host has storage of its own mounted there.
        """
        return self.state / 'compute'

    @property
    def images(self):
        return self.root / 'images'

    def storage(self, host):
        """Folder that holds what a host keeps on its disks."""
        return self.state / host

    def url(self, port):
        return 'http://%s:%d' % (ADDRESSES[CONTROLLER], port)


def found_in(root):
    """Settings of the labs that are up, or half up, in a root."""
    found = []
    for folder in sorted(pathlib.Path(root).glob('*')):
        name = _NAME.match(folder.name)
        if name and folder.is_dir():
            found.append(Settings(release=name.group(1), root=root,
                                  form=FULL if name.group(2) else LIGHT))
    return found
