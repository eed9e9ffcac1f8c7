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

"""The operations that nova-compute is killed in."""

#: What libvirt does with its job while nova-compute is away.
FINISHES = 'finishes'
FAILS = 'fails'
RUNS = 'runs'
#: It runs, and is faster than the abort that libvirt says yes to: 1 of 44.
OUTRUNS = 'outruns'
WORLDS = (FINISHES, FAILS, RUNS, OUTRUNS)

SOURCE = 'source'
DESTINATION = 'destination'

ENDED = ('completed', 'cancelled', 'failed', 'error')


class LiveMigration(object):
    """A live migration from A to B, with its disk, port and volume."""

    NAME = 'live-migration-block'
    SIDES = {SOURCE: 'host-a', DESTINATION: 'host-b'}

    def __init__(self, test):
        self.test = test

    def begin(self):
        self.test.live_migrate(self.test.server, 'host-b')

    def job(self):
        return self.test.world.running_job(self.test.server['id'])

    def go_on(self):
        """Let libvirt go on with its job; called over and over.

        :returns: whether the operation has ended
        """
        migrations = self.test.migrations(self.test.server)
        status = migrations[-1].status if migrations else None
        if self.job() is not None and status == 'running':
            self.job_is_monitored()
        return status in ENDED

    def job_is_monitored(self):
        """nova-compute watches the job: let it come to its end."""
        self.job().complete()

    def world_goes_on(self, world):
        """nova-compute is dead: what libvirt does with a job that runs."""
        job = self.job()
        if job is None or world in (RUNS, OUTRUNS):
            return
        if world == FINISHES:
            job.complete()
        else:
            job.fail()


OPERATIONS = {operation.NAME: operation for operation in (LiveMigration,)}
