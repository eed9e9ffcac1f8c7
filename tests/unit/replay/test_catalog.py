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

import ast
import os

import testtools

from tests.replay import catalog
from tests.replay import environment
from tests.replay import on_lab


def _tree(name):
    """Return the syntax tree of a module that only runs beside a Nova."""
    path = os.path.join(environment.TOP, 'tests', 'replay', name)
    with open(path, encoding='utf-8') as stream:
        return ast.parse(stream.read())


def _is_text(node):
    try:
        return isinstance(ast.literal_eval(node), str)
    except ValueError:
        return False


def _texts(node):
    """Return {name: value} of what a module sets to a text."""
    return {item.targets[0].id: ast.literal_eval(item.value)
            for item in node.body if isinstance(item, ast.Assign) and
            _is_text(item.value)}


class CatalogTestCase(testtools.TestCase):

    def test_every_scenario_that_is_written_is_listed(self):
        table = next(item.value for item in _tree('test_scenarios.py').body
                     if isinstance(item, ast.Assign) and
                     item.targets[0].id == 'SCENARIOS')
        written = [ast.literal_eval(key) for key in table.keys]
        self.assertEqual(sorted(written), sorted(catalog.names()))

    def test_every_test_is_there(self):
        tests = {'tests.replay.test_scenarios.%s.%s' % (item.name, part.name)
                 for item in _tree('test_scenarios.py').body
                 if isinstance(item, ast.ClassDef)
                 for part in item.body if isinstance(part, ast.FunctionDef)}
        for scenario in catalog.SCENARIOS.values():
            self.assertIn(scenario.test, tests)

    def test_every_verdict_has_a_meaning(self):
        texts = _texts(_tree('scenarios.py'))
        texts.update(_texts(_tree('on_lab.py')))
        verdicts = {text for text in texts.values() if text.isupper()}
        self.assertIn('SAFE', verdicts)
        self.assertEqual(verdicts, set(catalog.VERDICTS))

    def test_every_scenario_that_is_written_for_the_lab_is_listed(self):
        self.assertEqual(
            sorted(on_lab.SCENARIOS),
            sorted(item.name for item in catalog.SCENARIOS.values()
                   if item.lab))

    def test_every_verdict_on_the_lab_has_a_meaning(self):
        for verdict in (on_lab.LOST_DISK, on_lab.TWO_QEMUS,
                        on_lab.LEFT_BEHIND, on_lab.SAFE):
            self.assertNotEqual('', catalog.meaning(verdict))

    def test_unknown(self):
        self.assertEqual('of-tomorrow', catalog.known('of-tomorrow').title)
        self.assertEqual('', catalog.meaning('ODD'))
