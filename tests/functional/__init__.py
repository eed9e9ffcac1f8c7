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

"""Functional tests: real Nova services on Nova's own functional fixtures.

REST API, conductor, scheduler, Placement, and one ComputeManager with its
tracker and its libvirt driver for each host, in one process.

========================  ==================================================
``releases``              how Nova's releases differ; nothing else knows
``cloud``                 ``CloudTestCase``: hosts whose nova-compute can be
                          killed, with what users ask (``operations``) and
                          what there is to see (``views``)
``hypervisor``            the world outside Nova, which outlives nova-compute:
                          ``domain``, ``migration_job``, ``disks``
``libvirt_client``        the connection of one nova-compute to it
``process``               a nova-compute, its death, and which one is calling
``separation``            what keeps hosts apart that share a process
``properties``            a test that must hold guarded, and fail on stock
``crashes``, ``steps``    a nova-compute that is killed at a certain call, and
                          at each step of a settlement
``effects``               what a nova-compute does that outlives its process
``crash_points``          a nova-compute that is killed before and after each
                          effect of an operation
``caching``               what all tests of a process share
``races``                 two things that Nova does, in one fixed order
========================  ==================================================
"""

import gc

# Nova decides between eventlet and threads when this package is imported, and
# it has to happen before anything else of Nova is.
import nova.tests.functional  # noqa: F401

from tests.functional import caching

# Nova as a whole is in memory here, and to look through it again and again
# takes a quarter of a test's time. Seldom is enough.
gc.set_threshold(300000, 20, 100)

caching.keep_compiled_statements()
