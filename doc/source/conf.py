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

from docutils.parsers import rst

from nova_migration_guard import compat

extensions = [
    'openstackdocstheme',
    'oslo_config.sphinxconfiggen',
    'oslo_config.sphinxext',
]

project = 'nova-migration-guard'
copyright = 'nova-migration-guard developers'
master_doc = 'index'

html_theme = 'openstackdocs'
html_static_path = ['_static']
openstackdocs_auto_name = False
openstackdocs_use_storyboard = False
pygments_style = 'native'

# The sample configuration file, generated at each build.
config_generator_config_file = [
    ('../../etc/nova-migration-guard/config-generator.conf',
     '_static/nova-migration-guard'),
]


class Seams(rst.Directive):
    """A table of the seams, from what the guard itself checks."""

    def run(self):
        lines = ['.. list-table::', '   :header-rows: 1',
                 '   :widths: 50 50', '',
                 '   * - Function', '     - Parameters that are known']
        for seam in compat.SEAMS:
            lines.append('   * - ``%s.%s``' % (seam.module, seam.name))
            for number, known in enumerate(seam.signatures):
                lines.append('     %s ``%s``' % (
                    ' ' if number else '-', ', '.join(known)))
                lines.append('')
        self.state_machine.insert_input(lines, 'compat.SEAMS')
        return []


def setup(app):
    """Called by Sphinx."""
    app.add_directive('seams', Seams)
