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

"""tools/crash_matrix.py: what counts, and what the page shows."""

import importlib.util
import json
import pathlib

import fixtures
from oslotest import base

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def load():
    spec = importlib.util.spec_from_file_location(
        'crash_matrix', str(TOP / 'tools' / 'crash_matrix.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


crash_matrix = load()


def cell(guard=True, violations=(), point='rpc:begin:after', **changes):
    return dict({
        'operation': 'live-migration-block', 'side': 'source',
        'point': point, 'world': 'runs', 'guard': guard,
        'release': '34.0.0', 'reached': True, 'had_job': True,
        'violations': list(violations), 'story': 'all <is> well',
        'broken': None}, **changes)


class MatrixTestCase(base.BaseTestCase):

    def test_rows(self):
        matrix = crash_matrix.Matrix([
            cell(False, [['R1', 'a job'], ['R4', 'a record']]),
            cell(True),
            cell(False, point='db:end:before'),
            cell(True, point='journal:end:before')])
        self.assertEqual(
            [['34.0.0', 'live-migration-block', 'source', 3, 2, 1, 2, 0,
              'R1:1 R4:1']], list(matrix.rows()))
        self.assertEqual([], matrix.bad())

    def test_not_reached_is_not_counted(self):
        matrix = crash_matrix.Matrix([cell(reached=False)])
        self.assertEqual(0, list(matrix.rows())[0][6])

    def test_bad_cells_have_their_line(self):
        matrix = crash_matrix.Matrix([
            cell(True, [['R4', 'a record']]),
            cell(True, point='db:x:before', broken='Traceback\nOops\n')])
        self.assertEqual(2, len(matrix.bad()))
        text = matrix.text()
        self.assertIn(
            "crash-points --operation live-migration-block --side source "
            "--step 'rpc:begin:after' --world runs --guard on "
            '--release 34.0.0\n  R4: a record', text)
        self.assertIn('the harness: Oops', text)

    def test_last_line_of_a_cell_counts(self):
        path = self.useFixture(fixtures.TempDir()).join('results')
        with open(path, 'w') as stream:
            for found in (cell(True, [['R4', 'a record']]), cell(True)):
                stream.write(json.dumps(found) + '\n')
        self.assertEqual([], crash_matrix.Matrix.read(path).bad())

    def test_what_stock_leaves_as_well_is_not_the_guards(self):
        left = [['left', 'a record']]
        self.assertEqual([], crash_matrix.Matrix([
            cell(False, left), cell(True, left)]).bad())
        self.assertEqual(1, len(crash_matrix.Matrix([
            cell(False), cell(True, left)]).bad()))

    def test_page(self):
        page = crash_matrix.Matrix([
            cell(False, [['R1', 'a job']]), cell(True)]).html()
        self.assertIn('class="cell bad" title="R1: a job; all &lt;is&gt; '
                      'well">R1<', page)
        self.assertIn('class="cell ok"', page)
        self.assertEqual(page.count('<td'), 2)

    def test_without_results(self):
        self.assertIn('operation', crash_matrix.Matrix.read(
            '/nonexistent').text())
