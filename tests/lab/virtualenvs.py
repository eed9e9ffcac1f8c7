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


"""The virtualenvs of a lab, kept in its root."""

import concurrent.futures
import importlib.util
import pathlib

from tests.lab import settings as lab_settings


def _load_nova_venv():
    path = lab_settings.TOP / 'tools' / 'nova_venv.py'
    spec = importlib.util.spec_from_file_location('nova_venv', str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


nova_venv = _load_nova_venv()

#: Placement, Glance, and what runs the lab's tests. Their APIs are stable, so
#: one release of them serves all releases of Nova.
CONTROL_RELEASE = '34.0.0'
_PINS = lab_settings.TOP / 'tests' / 'lab'
CONTROL_PINS = _PINS / 'constraints.txt'
#: Keystone and Neutron.
NETWORK_PINS = _PINS / 'constraints-network.txt'
#: Cinder. It needs the Python for which the distribution has built Ceph's
#: modules, which PyPI does not have.
VOLUME_PINS = _PINS / 'constraints-volume.txt'
VOLUME_PYTHON = '/usr/bin/python3'
CEPH_MODULES = ('rados', 'rbd')
DIST_PACKAGES = pathlib.Path('/usr/lib/python3/dist-packages')

#: Where the real services want another Python than the functional tests,
#: which run on the first one of constraints/releases.cfg. On 3.8, Train's
#: live migration ends in its pre-checks: the privsep helper exits with 1.
PYTHONS = {'20.0': '3.7', '20.1': '3.7'}

Failure = nova_venv.Failure


class Virtualenvs(object):
    """Of one lab.

    :param settings: of the lab
    """

    def __init__(self, settings):
        self._release = settings.release
        self._full = settings.full
        folder = settings.root / 'venvs'
        #: folder of the one with Nova, libvirt-python and this project
        self.nova = folder / ('nova-' + settings.release)
        #: file of the pins that it is made from
        self.nova_pins = nova_venv.constraints_file(settings.release)
        #: folder of the one with Placement, Glance and the tests
        self.control = folder / 'control'
        #: folders of those that the full form has besides
        self.network = folder / 'network'
        self.volume = folder / 'volume'

    def make(self):
        """Make what is missing or out of date.

        :raises Failure: it says what cannot be had
        """
        makers = [self._make_nova, self.make_control]
        if self._full:
            makers += [self._make_network, self._make_volume]
        # the first uv brings itself where there is none
        nova_venv.uv('--version')
        with concurrent.futures.ThreadPoolExecutor(len(makers)) as pool:
            for made in [pool.submit(make) for make in makers]:
                made.result()

    def _make_nova(self):
        series = self._release.rsplit('.', 1)[0]
        nova_venv.make(self._release, self.nova, python=PYTHONS.get(series))
        if not (self.nova / 'bin' / 'nova-compute').exists():
            raise Failure('%s has no nova-compute' % self.nova)

    def _make_network(self):
        _make('Keystone and Neutron', self.network, NETWORK_PINS)

    def _make_volume(self):
        _make('Cinder', self.volume, VOLUME_PINS, VOLUME_PYTHON)
        _link_ceph(self.volume)

    def make_control(self):
        """Make the one that the tests run in.

        :returns: its interpreter
        """
        return _make('control services', self.control, CONTROL_PINS)


def _make(what, folder, pins, interpreter=None):
    """Make a virtualenv from pins, unless it is there as they say.

    :param interpreter: by default one that runs Nova's newest release
    :returns: the interpreter of the virtualenv
    """
    python = folder / 'bin' / 'python'
    stamp = folder / nova_venv.STAMP
    text = pins.read_text()
    if stamp.exists() and stamp.read_text() == text:
        return python
    nova_venv.say('%s: virtualenv in %s' % (what, folder))
    entry = nova_venv.release_entry(CONTROL_RELEASE)
    nova_venv.uv('venv', '--clear', '--python', interpreter or
                 nova_venv.find_python(*entry['pythons'].split()), folder)
    nova_venv.uv('pip', 'install', '--python', python, '--requirement', pins,
                 UV_EXCLUDE_NEWER=entry['cutoff'])
    stamp.write_text(text)
    return python


def _link_ceph(venv):
    """Give a virtualenv the modules of Ceph that the distribution has."""
    site, = venv.glob('lib/python3*/site-packages')
    for name in CEPH_MODULES:
        found = sorted(DIST_PACKAGES.glob(name + '.*.so'))
        if not found:
            raise Failure('%s has no %s: apt-get install python3-%s' % (
                DIST_PACKAGES, name, name))
        for module in found:
            link = site / module.name
            if not link.is_symlink():
                link.symlink_to(module)
