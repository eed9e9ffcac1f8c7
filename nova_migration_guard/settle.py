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

"""Gathers one instance's facts and carries its verdict out.

What is written to Nova's records here is only what the facts have shown to be
true. Each step may fail (the conductor is away, libvirt hangs); then the
instance stays held, and the next attempt starts from the facts again.
"""

import dataclasses
import time

from oslo_log import log as logging

from nova_migration_guard import facts
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import verdict

LOG = logging.getLogger(__name__)

# The status that Nova itself gives a live migration that was aborted.
CANCELLED = 'cancelled'

GONE = verdict.Ruling(verdict.Verdict.LEAVE,
                      'the instance is no longer on this host')


class Settler(object):
    """Settles instances of one host, one at a time.

    :param host: a :class:`nova_migration_guard.nova_host.NovaHost`
    :param jobs: a :class:`nova_migration_guard.libvirt_jobs.LibvirtJobs`
    :param options: the ``[migration_guard]`` options
    """

    def __init__(self, host, jobs, options):
        self._host = host
        self._jobs = jobs
        self._options = options

    def know(self, instance, observation, records):
        """Put one instance's facts together.

        :param instance: a ``nova.objects.Instance``
        :param observation: what libvirt said of it
        :param records: its open records; the others are read only when the
            verdict depends on them
        :returns: a :class:`nova_migration_guard.facts.Facts`
        """
        known = facts.Facts(
            host=self._host.name, vm_state=instance.vm_state,
            task_state=instance.task_state, records=tuple(records),
            observation=observation, observed_at=time.time())
        if known.needs_all_records:
            known = dataclasses.replace(
                known, records=tuple(self._host.records(instance.uuid)))
        return known

    def settle(self, uuid, timeout, observation=None):
        """Find out what is true of one instance, and carry its verdict out.

        :param uuid: the instance's UUID
        :param timeout: seconds to wait for a job that is aborted to be gone
        :param observation: what libvirt has just said of it, if it was asked
        :returns: the :class:`nova_migration_guard.verdict.Ruling` at the end:
            HOLD when the instance is not settled, LEAVE when it is
        :raises Exception: what Nova or libvirt raise
        """
        instance = self._host.instance(uuid)
        if instance is None:
            return GONE
        if observation is None:
            observation = self._jobs.observe(uuid, self._options.call_timeout)
        ruling, known = self._judge(instance, observation)
        if ruling.refuse:
            self._host.make_busy(instance)
        if ruling.verdict is verdict.Verdict.ABORT:
            observation = self._jobs.abort(uuid, timeout)
            instance = self._host.instance(uuid)
            if instance is None:
                return GONE
            ruling, known = self._judge(instance, observation)
            if ruling.verdict is verdict.Verdict.ABORT:
                ruling = verdict.Ruling(
                    verdict.Verdict.HOLD, 'its migration job is still there '
                    '%s s after it was aborted' % timeout, refuse=True)
        if ruling.verdict is verdict.Verdict.ROLL_BACK:
            self._roll_back(instance, known)
            return verdict.Ruling(verdict.Verdict.LEAVE, ruling.reason)
        return ruling

    def _judge(self, instance, observation):
        known = self.know(instance, observation,
                          self._host.open_records(instance.uuid))
        ruling = verdict.judge(known)
        LOG.debug('%(verdict)s: %(reason)s. Facts: %(facts)s',
                  {'verdict': ruling.verdict.value, 'reason': ruling.reason,
                   'facts': known}, instance=instance)
        return ruling, known

    def _roll_back(self, instance, known):
        if (instance.vm_state == facts.PAUSED and
                known.observation.state == libvirt_jobs.State.RUNNING):
            # an aborted migration resumes the guest, whoever had paused it
            self._jobs.pause(instance.uuid, self._options.call_timeout)
        self._host.end_records(instance.uuid, CANCELLED)
        self._host.make_idle(instance)
