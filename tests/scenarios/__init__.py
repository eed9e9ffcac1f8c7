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

"""Scenarios that run on any cloud of three compute hosts.

What the gating job runs on devstack is what the tests run on the lab:
``python -m tests.scenarios NAME`` there, ``tests/lab/test_scenarios.py`` here.

====================  ======================================================
``cloud``             what a scenario needs to reach of a cloud; the adapter
``steps``             what is done and what is seen, by API and virsh
``stories``           the scenarios
``devstack``          the adapter for devstack, over ssh
====================  ======================================================

A scenario raises :class:`~tests.scenarios.cloud.Violation` when a rule is
broken. When it came too late, so that it shows nothing, it raises
:class:`~tests.scenarios.cloud.TooLate`: that is no success.
"""
