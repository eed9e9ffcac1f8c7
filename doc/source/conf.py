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

"""Configuration of the documentation's build."""

import os
import sys

from docutils.parsers import rst

from nova_migration_guard import compat

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'ext'))

extensions = [
    'cliff.sphinxext',
    'decisions',
    'openstackdocstheme',
    'oslo_config.sphinxconfiggen',
    'oslo_config.sphinxext',
]

project = 'nova-migration-guard'
copyright = 'nova-migration-guard developers'
master_doc = 'index'

html_theme = 'openstackdocs'
# read by the pages that include them
exclude_patterns = ['install/matrix.rst']
html_static_path = ['_static']
openstackdocs_auto_name = False
openstackdocs_use_storyboard = False
pygments_style = 'native'

man_pages = [
    ('cli/nova-migration-guard', 'nova-migration-guard',
     'what nova-migration-guard does on a compute host',
     ['nova-migration-guard developers'], 1),
    ('cli/nova-migration-guard-status', 'nova-migration-guard-status',
     'whether nova-migration-guard can be relied on',
     ['nova-migration-guard developers'], 1),
]

# The sample configuration file, generated at each build.
config_generator_config_file = [
    ('../../etc/nova-migration-guard/config-generator.conf',
     '_static/nova-migration-guard'),
]


class Table(rst.Directive):
    """A list-table that is made of what the guard itself checks."""

    #: In percent, and the row of titles.
    WIDTHS = ()
    TITLES = ()

    def rows(self):
        """Lists of cells; a cell is a list of lines."""
        raise NotImplementedError

    def run(self):
        lines = ['.. list-table::', '   :header-rows: 1',
                 '   :widths: ' + ' '.join(map(str, self.WIDTHS)), '']
        for row in [[[title] for title in self.TITLES]] + list(self.rows()):
            for number, cell in enumerate(row):
                for line, text in enumerate(cell or ['']):
                    lines.append('   %s %s %s' % (
                        ' ' if number or line else '*',
                        ' ' if line else '-', text))
                    lines.append('')
        self.state_machine.insert_input(lines, 'compat')
        return []


class Seams(Table):
    WIDTHS = (35, 40, 25)
    TITLES = ('Function', 'Parameters that are known',
              'Upstream change that makes its patch needless')

    def rows(self):
        for seam in compat.SEAMS:
            forms = []
            for form in seam.forms:
                text = '``%s``' % ', '.join(form.parameters)
                if form.since:
                    text += ' since %s: %s' % (
                        ', '.join(form.since), form.change)
                forms.append(text)
            yield (['``%s.%s``' % (seam.module, seam.name)], forms,
                   [seam.upstream or ''])


class Releases(Table):
    WIDTHS = (10, 20, 25, 20, 25)
    TITLES = ('Nova', 'OpenStack', 'Tested on', 'Python', 'Threads')

    def rows(self):
        for series in compat.SERIES:
            yield ([str(series.number)], [series.name],
                   [', '.join(series.tested)],
                   [' to '.join(series.pythons)],
                   [' or '.join(series.backends)])


def setup(app):
    """Called by Sphinx."""
    app.add_directive('releases', Releases)
    app.add_directive('seams', Seams)
