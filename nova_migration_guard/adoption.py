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

"""Sees a live migration through that an earlier nova-compute began.

Its job goes on in libvirt. Nova's own monitor watches it again, with Nova's
settings, in the thread pool of live migrations, and so abort and
force-complete through the API work as they did. The journal keeps its entry
until the migration has ended, so a further restart adopts it again.
"""

import time

from oslo_log import log as logging

from nova_migration_guard import facts
from nova_migration_guard import libvirt_jobs

LOG = logging.getLogger(__name__)

# Seconds between two looks at a job that ends: Nova's monitor looks as often.
_INTERVAL = 0.5

_State = libvirt_jobs.State


class NotAsItSeemed(Exception):
    """The guest is not where Nova's monitor takes it to be."""


class Job(object):
    """Stands for the thread in which migrateToURI3 would be waiting.

    That thread died with the nova-compute that began the migration. Nova's
    monitor asks whether it has ended when libvirt names no job: ``ready`` is
    what it calls to 31.x (an eventlet event), ``done`` from 32.0 (a future).

    :param observe: a callable that gives the domain's
        :class:`~nova_migration_guard.libvirt_jobs.Observation`
    """

    def __init__(self, observe):
        self._observe = observe

    def done(self):
        job = self._observe().job
        return job is not None and not job.active

    ready = done

    def in_postcopy(self):
        """Whether the guest runs at the destination and needs this host."""
        return facts.job_of(self._observe()) is facts.Job.OUTGOING_POSTCOPY

    def seen_gone(self):
        """Wait until the job is gone, as long as that takes.

        One that was cancelled can stay for minutes, and only then is decided
        where the guest goes on.

        :returns: an :class:`~nova_migration_guard.libvirt_jobs.Observation`
            from after that
        """
        while not self.done():
            time.sleep(_INTERVAL)
        return self._observe()


class Adoptions(object):
    """The live migrations that this nova-compute has adopted.

    :param parts: a :class:`nova_migration_guard.parts.Parts`
    :param monitors: a
        :class:`nova_migration_guard.nova_host.monitors.Monitors`
    :param hold: a callable that holds an instance: (uuid, reason)
    :param ended: a callable that is told of the end of each: (uuid)
    """

    def __init__(self, parts, monitors, hold, ended):
        self._parts = parts
        self._monitors = monitors
        self._hold = hold
        self._ended = ended
        #: UUIDs of the instances whose migration is watched
        self.watched = set()

    def begin(self, uuid, ruling):
        """Watch the job of an instance's migration, until its end.

        Returns at once.

        :param uuid: the instance's UUID
        :param ruling: the :class:`nova_migration_guard.verdict.Ruling`
        :raises Exception: what Nova raises, when it cannot be watched
        """
        entry = self._parts.journal.entry(uuid)
        instance = self._parts.host.instance(uuid)
        self.watched.add(uuid)
        try:
            self._monitors.begin(
                instance, lambda: self._see_through(instance, entry, ruling))
        except Exception:
            self.watched.discard(uuid)
            raise

    def _see_through(self, instance, entry, ruling):
        uuid = instance.uuid
        job = Job(lambda: self._parts.jobs.observe(
            uuid, self._parts.options.call_timeout))
        try:
            with self._parts.actions.settlement(uuid, ruling) as context:
                self._monitors.watch(
                    context, instance, entry, job,
                    lambda: self._must_have_left(job),
                    lambda: self._must_have_stayed(instance, entry, job))
        except Exception as e:
            LOG.exception('The adopted migration could not be seen through.',
                          instance=instance)
            self._hold(uuid, 'the adopted migration could not be seen '
                       'through: %s' % e)
        finally:
            self.watched.discard(uuid)
        self._ended(uuid)

    @staticmethod
    def _must_have_left(job):
        """Let Nova finish only what has left, and not what was shut off."""
        guest = facts.guest_of(job.seen_gone())
        if guest is not facts.Guest.ABSENT:
            raise NotAsItSeemed(guest.value)

    def _must_have_stayed(self, instance, entry, job):
        """Let Nova roll back only what is here, and let the guest run again.

        Nova's monitor knows no more that the one before it has paused the
        guest to force its migration to complete; and libvirt lets a guest
        run that its user had paused.
        """
        seen = job.seen_gone()
        guest = facts.guest_of(seen)
        if guest is not facts.Guest.HERE:
            raise NotAsItSeemed(guest.value)
        paused = facts.PAUSED in (instance.vm_state, entry.vm_state)
        timeout = self._parts.options.call_timeout
        if paused and seen.state == _State.RUNNING:
            self._parts.jobs.pause(instance.uuid, timeout)
        elif not paused and seen.state == _State.PAUSED:
            self._parts.jobs.resume(instance.uuid, timeout)
