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

import configparser
import pathlib

import ddt
from oslotest import base

from nova_migration_guard import compat

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


@ddt.ddt
class SeriesTestCase(base.BaseTestCase):

    @ddt.data(('20.0.0', 20), ('29.2.1.dev7', 29), ('34.0.0.0rc1', 34))
    @ddt.unpack
    def test_known(self, release, number):
        self.assertEqual(number, compat.series_of(release).number)

    @ddt.data('19.3.2', '35.0.0', 'master', '34')
    def test_unknown(self, release):
        error = self.assertRaises(compat.UnsupportedNova, compat.series_of,
                                  release)
        self.assertIn(release, str(error))

    def test_they_are_what_the_functional_tests_run_on(self):
        table = configparser.ConfigParser(interpolation=None)
        table.read(str(TOP / 'constraints' / 'releases.cfg'))
        tested = {release: entry for release, entry in table.items()
                  if entry.get('functional')}
        self.assertEqual(list(tested), [
            release for series in compat.SERIES for release in series.tested])
        for release, entry in tested.items():
            series = compat.series_of(release)
            pythons = sorted(entry['pythons'].split(),
                             key=compat.numbers_of)
            self.assertEqual((pythons[0], pythons[-1]), series.pythons,
                             release)
            # 33 can use native threads, and its fixtures cannot
            self.assertLessEqual(set(entry['functional'].split()),
                                 set(series.backends), release)


@ddt.ddt
class FormTestCase(base.BaseTestCase):

    def form(self, name, release):
        seam, = [seam for seam in compat.SEAMS if seam.name == name]
        return compat.form_of(seam, release).parameters[-1]

    @ddt.data(
        ('20.1.1', 'source_bdms'), ('24.1.0', 'source_bdms'),
        ('24.1.1', 'pre_live_migration'), ('24.2.1', 'pre_live_migration'),
        ('25.0.0', 'source_bdms'), ('25.0.1', 'pre_live_migration'),
        ('26.0.0', 'pre_live_migration'), ('34.0.0', 'pre_live_migration'))
    @ddt.unpack
    def test_backported(self, release, last):
        self.assertEqual(last, self.form(
            'ComputeManager._rollback_live_migration', release))

    @ddt.data(
        ('23.0.2', 'encryption'), ('23.1.0', 'destroy_secrets'),
        ('25.1.1', 'destroy_secrets'), ('25.2.0', 'force'),
        ('26.1.1', 'destroy_secrets'), ('26.2.0', 'force'),
        ('27.0.0', 'destroy_secrets'), ('27.1.0', 'force'),
        ('28.0.0', 'force'))
    @ddt.unpack
    def test_backported_to_some(self, release, last):
        self.assertEqual(last, self.form(
            'LibvirtDriver._disconnect_volume', release))

    def test_forms_of_one_seam_differ(self):
        for seam in compat.SEAMS:
            forms = [form.parameters for form in seam.forms]
            self.assertEqual(len(forms), len(set(forms)), seam.name)
            self.assertEqual((), seam.forms[0].since, seam.name)
            for form in seam.forms[1:]:
                self.assertNotEqual((), form.since, seam.name)
                self.assertTrue(form.change, seam.name)
