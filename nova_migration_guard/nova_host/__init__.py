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

"""The Nova of this host: the only package that calls Nova's private methods.

Every method that reads or writes makes a request context of its own: contexts
are not to be shared between threads.

====================  =====================================================
``host``              one nova-compute: instances, records, states, peers
``live_migration``    ends a live migration through Nova's own code
``plan``              what has to be known for that
``allocations``       what Placement keeps of an instance and its migrations
``volumes``           what Cinder and Nova keep of its volumes
``images``            images that nobody finishes any more
``block_operations``  ends an operation on a disk for who waits for it
``actions``           what owners and operators of an instance see
``tracking``          one resource tracker, within its audit
====================  =====================================================
"""
