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

"""A section of nova-compute's guru meditation report.

The report is written when nova-compute gets SIGUSR2: it shows what is held as
the process itself sees it.
"""

import time

from oslo_reports import guru_meditation_report
from oslo_reports.models import with_default_views

from nova_migration_guard import guards

TITLE = 'Migration guard'


def register():
    """Let the report have the section."""
    guru_meditation_report.TextGuruMeditation.register_section(
        TITLE, section)


def section():
    """Make the section.

    :returns: a model of oslo.reports with {host: {instance UUID: facts}}
    """
    return with_default_views.ModelWithDefaultViews(
        data={name: _of(guardian) for name, guardian in guards.by_host()})


def _of(guardian):
    now = time.monotonic()
    held = {uuid: {'reason': one.reason, 'attempts': one.attempts,
                   'next attempt in seconds': int(one.next_attempt - now)}
            for uuid, one in list(guardian.held.items())}
    return held or 'nothing is held'
