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

"""The scenarios: nova-compute dies in the middle of something."""

import uuid

from tests.scenarios import cloud as clouds
from tests.scenarios import steps as scenario_steps


def restart_in_live_migration(steps):
    """It restarts in mid live migration (bug 1753676), then all goes on."""
    first, second, third = steps.cloud.hosts
    steps.begin_migration()
    steps.kill_compute_in_flight()
    steps.start_compute()
    steps.must_be_settled_on(first, 'cancelled', 'failed', 'error')
    steps.must_migrate_to(third)
    steps.must_migrate_to(second)


def migration_ends_while_down(steps):
    """The migration ends while nobody looks: it is finished."""
    first, second, third = steps.cloud.hosts
    steps.begin_migration()
    steps.kill_compute_in_flight()
    steps.set_speed(scenario_steps.FAST)
    steps.wait_until(lambda: steps.running_on() == [second],
                     'libvirt has moved it to %s' % second)
    steps.start_compute()
    steps.must_be_settled_on(second, 'completed')
    steps.must_migrate_to(third)


def interrupted_snapshot(steps):
    """It restarts in mid live snapshot: the guest stays what it was."""
    first = steps.cloud.hosts[0]
    name = 'scenario-%s' % uuid.uuid4()
    steps.fill_disk()
    steps.create_image(name)
    steps.wait_until(lambda: steps.slow_block_job(first),
                     'its disk is copied', interval=0)
    steps.cloud.say('kill nova-compute on %s' % first)
    steps.cloud.kill_compute(first)
    percent = steps.block_job(first)
    if percent is None or percent >= 100:
        raise clouds.TooLate('no block job was left on %s' % first)
    steps.start_compute()
    steps.wait_until(lambda: steps.nova_says() == ('active', None, first),
                     'it is idle')
    steps.must(steps.block_job(first) is None,
               'no block job is left behind an idle guest')
    steps.must('yes' in [line.split()[-1] for line in steps.virsh(
        first, 'dominfo', steps.server.id).splitlines()
        if line.startswith('Persistent')], 'its domain is persistent')
    steps.wait_until(lambda: steps.images(name) == [],
                     'no image stays unfinished', 60)


STORIES = {story.__name__.replace('_', '-'): story for story in (
    restart_in_live_migration, migration_ends_while_down,
    interrupted_snapshot)}


def tell(name, cloud, **options):
    """Run one scenario, and delete its guest.

    :param name: of :data:`STORIES`
    :param cloud: a :class:`tests.scenarios.cloud.Cloud`
    :param options: of :class:`tests.scenarios.steps.Steps`
    :raises tests.scenarios.cloud.Violation: a rule is broken
    :raises tests.scenarios.cloud.TooLate: nothing was shown
    """
    steps = scenario_steps.Steps(cloud, **options)
    try:
        steps.boot()
        STORIES[name](steps)
    finally:
        steps.delete()
