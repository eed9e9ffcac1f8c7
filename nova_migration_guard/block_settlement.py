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

"""Ends the block operations of one instance that nobody controls.

In this order: the jobs are seen to be gone, the domain is defined, the guest's
file systems are thawed, and then each operation is finished or undone, as the
disk shows. Each step may fail; then the instance stays held, and the next
attempt starts from the facts again.
"""

import dataclasses
import os
import shutil

from oslo_log import log as logging

from nova_migration_guard import block_verdict
from nova_migration_guard import domain_xml
from nova_migration_guard import facts
from nova_migration_guard import journal

LOG = logging.getLogger(__name__)

Outcome = block_verdict.Outcome

GIB = 1024 ** 3


class BlockSettlement(object):
    """One attempt to end the block operations of one instance.

    :param parts: a :class:`nova_migration_guard.parts.Parts`
    :param instance: a ``nova.objects.Instance``
    :param timeout: seconds to wait for jobs that are aborted to be gone
    """

    def __init__(self, parts, instance, timeout):
        self._parts = parts
        self._instance = instance
        self._uuid = instance.uuid
        self._timeout = timeout

    def settle(self, known, ruling):
        """Carry out a verdict END_BLOCK_JOBS.

        :param known: a :class:`nova_migration_guard.block_verdict.Known`
        :param ruling: the :class:`nova_migration_guard.verdict.Ruling`
        :returns: the ruling at the end: HOLD when something is left
        :raises Exception: what Nova, libvirt or a service raises
        """
        jobs = known.novas_jobs
        if self._parts.options.foreign_block_jobs == 'abort':
            jobs = known.observation.block_jobs
        if jobs:
            known = dataclasses.replace(
                known, observation=self._parts.jobs.abort_block_jobs(
                    self._uuid, jobs, self._timeout))
            left = self._left(known.observation, jobs)
            if left:
                return block_verdict.hold(left)
        with self._parts.actions.settlement(self._uuid, ruling):
            unknown = self._end(known)
        if unknown:
            return block_verdict.hold(unknown)
        self._parts.host.end_task(self._uuid, facts.SNAPSHOT_STATES)
        return ruling

    def _left(self, seen, jobs):
        """What is left of jobs that were aborted, or None."""
        if seen.block_jobs is None:
            return 'libvirt does not say whether its block jobs are gone ' \
                   '(%s)' % seen.trouble
        disks = {job.disk for job in jobs}.intersection(
            job.disk for job in seen.block_jobs)
        if disks:
            return 'the block job on disk %s is still there %d s after it ' \
                   'was aborted' % (', '.join(sorted(disks)), self._timeout)
        return None

    def _end(self, known):
        """Define the domain, and end each operation.

        :returns: why an operation cannot be ended, or None
        """
        if known.vanished:
            pivoting = [entry for entry in known.entries
                        if entry.phase == journal.PIVOTING]
            if pivoting:
                return ('the guest has stopped, and whether it used volume '
                        '%s or %s last is not known; nothing is deleted' % (
                            pivoting[0].subject,
                            pivoting[0].details['new_volume']))
            self._define(self._journaled_definition(known))
            known = dataclasses.replace(
                known, observation=self._parts.jobs.observe(
                    self._uuid, self._parts.options.call_timeout))
        outcomes = [(entry, block_verdict.outcome(
            entry, known.observation.disks or ())) for entry in known.entries]
        if known.transient:
            self._define(self._definition(known, outcomes))
        unknown = None
        for entry, outcome in outcomes:
            if outcome is Outcome.UNKNOWN:
                unknown = (
                    'whether the %s of %s was done is not known: disk %s has '
                    'another source; nothing is deleted' % (
                        entry.operation, entry.subject, entry.disk))
            else:
                self._end_operation(entry, outcome, known.observation.disks)
        if known.snapshots and not known.entries:
            self._delete_images()
        return unknown

    # ---- the domain

    def _define(self, xml):
        self._parts.jobs.define(self._uuid, xml,
                                self._parts.options.call_timeout)
        LOG.info('The domain is defined again.', instance=self._instance)

    def _definition(self, known, outcomes):
        """What a running guest is to be started with the next time."""
        xml = self._journaled_definition(known)
        swapped = any(
            entry.operation == journal.VOLUME_SWAP and
            outcome is not Outcome.NOT_DONE for entry, outcome in outcomes)
        if xml is None or swapped:
            xml = self._parts.jobs.xml(
                self._uuid, self._parts.options.call_timeout, inactive=True,
                secure=True)
        return domain_xml.without_mirrors(xml)

    @staticmethod
    def _journaled_definition(known):
        # the first operation has found the domain as it was
        return next((entry.domain_xml for entry in known.entries
                     if entry.domain_xml), None)

    # ---- the operations

    def _end_operation(self, entry, outcome, disks):
        if entry.phase == journal.FREEZING:
            self._thaw()
        if outcome is Outcome.DONE:
            if entry.details.get('resize_to'):
                self._parts.jobs.resize(
                    self._uuid, entry.disk, entry.details['resize_to'] * GIB,
                    self._parts.options.call_timeout)
            self._parts.blocks.finish(self._instance, entry)
        else:
            if entry.operation == journal.LIVE_SNAPSHOT and entry.target:
                self._remove_snapshot(entry.target, disks or ())
            self._parts.blocks.undo(self._instance, entry)
        self._parts.journal.end(self._uuid, entry.subject)
        LOG.info('The %(operation)s of %(subject)s: %(outcome)s.',
                 {'operation': entry.operation, 'subject': entry.subject,
                  'outcome': outcome.value}, instance=self._instance)

    def _thaw(self):
        try:
            self._parts.jobs.thaw(self._uuid, self._parts.options.call_timeout)
        except Exception as e:
            # its owner can help it, but not as long as it is held
            LOG.warning('Its file systems may be frozen, and could not be '
                        'thawed: %s', e, instance=self._instance)

    def _remove_snapshot(self, path, disks):
        """Remove the folder that Nova has made for one live snapshot.

        :param path: of the image in it
        :param disks: those of the guest, whose images are not touched
        """
        folder = os.path.realpath(os.path.dirname(path))
        root = os.path.realpath(self._parts.blocks.snapshot_folder)
        if os.path.dirname(folder) != root:
            LOG.warning('%s is not removed, since it is not in %s.', path,
                        root, instance=self._instance)
            return
        used = [image for disk in disks for image in disk.chain
                if os.path.realpath(image).startswith(folder + os.sep)]
        if used:
            LOG.warning('%s is not removed, since the guest uses %s.', folder,
                        ', '.join(used), instance=self._instance)
        elif os.path.isdir(folder):
            shutil.rmtree(folder)

    def _delete_images(self):
        """Delete images of which the journal knows nothing."""
        try:
            self._parts.blocks.delete_unfinished_images(self._instance)
        except Exception as e:
            LOG.warning('Whether Glance waits for an image of it is not '
                        'known: %s', e, instance=self._instance)


def abandon(parts, entries):
    """End the block operations of an instance that is deleted.

    :param parts: a :class:`nova_migration_guard.parts.Parts`
    :param entries: the journal's
        :class:`nova_migration_guard.journal.BlockOperation`
    :raises Exception: what a service raises
    """
    for entry in entries:
        parts.blocks.undo(None, entry)
        parts.journal.end(entry.instance, entry.subject)
