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

"""nova-compute is killed at every point of an operation.

An operation runs once, and the effects that it has on a host are named. Then
it runs again for each of them, before it and after it: nova-compute is frozen
there for good, the world goes on, nova-compute starts again, and when all has
come to rest the rules are judged. The instance is migrated and deleted then,
and nothing may be left of it.

==============  ============================================================
``points``      where a process can be killed, and the kill
``operations``  what it is killed in, and what libvirt does meanwhile;
                ``block_operations``, ``move_operations``
``testcase``    one kill from the boot of an instance to its deletion
``judging``     the rules
``durability``  what is lost of a journal that was not synced
``play``        many kills, in one process
``short_form``  those that a suite runs
==============  ============================================================
"""
