# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What the guard costs, measured on Nova's functional fixtures.

Stock beside guarded in one process, turn and turn about, so that both meet
the same machine. Queries are counted; of times only the ratio says anything,
for the database is SQLite in memory and no message leaves the process. What
concerns libvirt or the disk is measured on real ones, beside the least that
it can cost there.
``tools/benchmark`` runs these, and prints the tables.

=============  ==============================================================
``audits``     one resource audit of a host, by the number of its instances
``starts``     one start of nova-compute, by the number of its instances
``listing``    what a start asks of a real libvirt, beside a bare loop
``journals``   what a live migration waits for the journal, beside an fsync
``region``     a model of 10,000 hosts that are restarted at once
``measuring``  pairs of runs, and what comes of them
=============  ==============================================================
"""

# Nova decides between eventlet and threads when this package is imported, and
# it has to happen before anything else of Nova is.
import nova.tests.functional  # noqa: F401
