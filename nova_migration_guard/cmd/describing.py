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

"""Facts in words."""


def describe(known):
    """Facts in words, as pairs of names and values.

    :param known: a :class:`nova_migration_guard.facts.Facts`
    """
    return [
        ('task_state', known.task_state), ('vm_state', known.vm_state),
        ('nova_says_on', known.instance_host or known.host),
        ('guest', known.guest.value), ('job', known.job.value),
        ('libvirt_trouble', known.observation.trouble),
        ('destination', known.destination),
        ('destination_says', known.peer.value),
        ('destination_asked_over', known.peer_said),
        ('destination_works', known.peer_works),
        ('journal_phase', known.phase),
        ('open_migrations', ', '.join(
            '%d (%s) to %s' % (record.id, record.status, record.destination)
            for record in known.open_records))]
