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


"""The two virtualenvs of a lab, kept in its root."""

import importlib.util

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
CONTROL_PINS = lab_settings.TOP / 'tests' / 'lab' / 'constraints.txt'

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
        folder = settings.root / 'venvs'
        #: folder of the one with Nova, libvirt-python and this project
        self.nova = folder / ('nova-' + settings.release)
        #: file of the pins that it is made from
        self.nova_pins = nova_venv.constraints_file(settings.release)
        #: folder of the one with everything else
        self.control = folder / 'control'

    def make(self):
        """Make what is missing or out of date.

        :raises Failure: it says what cannot be had
        """
        series = self._release.rsplit('.', 1)[0]
        nova_venv.make(self._release, self.nova, python=PYTHONS.get(series))
        if not (self.nova / 'bin' / 'nova-compute').exists():
            raise Failure('%s has no nova-compute' % self.nova)
        self.make_control()

    def make_control(self):
        """Make the one that the tests run in.

        :returns: its interpreter
        """
        python = self.control / 'bin' / 'python'
        stamp = self.control / nova_venv.STAMP
        pins = CONTROL_PINS.read_text()
        if stamp.exists() and stamp.read_text() == pins:
            return python
        nova_venv.say('control services: virtualenv in %s' % self.control)
        entry = nova_venv.release_entry(CONTROL_RELEASE)
        nova_venv.uv('venv', '--clear', '--python',
                     nova_venv.find_python(*entry['pythons'].split()),
                     self.control)
        nova_venv.uv('pip', 'install', '--python', python, '--requirement',
                     CONTROL_PINS, UV_EXCLUDE_NEWER=entry['cutoff'])
        stamp.write_text(pins)
        return python
