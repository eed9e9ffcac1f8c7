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
from nova_migration_guard import journal
from nova_migration_guard import metrics

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
        return ruling

    def _left(self, seen, jobs):
        """What is left of jobs that were aborted, or None."""
        if seen.block_jobs is None:
            return 'libvirt does not say whether its block jobs are gone ' \
                   '(%s)' % seen.trouble
        disks = {job.disk for job in jobs}.intersection(
            job.disk for job in seen.block_jobs)
        if disks:
            metrics.count('abort_timeouts_total')
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
                return block_verdict.not_known(
                    'the guest has stopped', pivoting[0]).reason
            self._define(self._journaled_definition(known))
            known = dataclasses.replace(
                known, observation=self._parts.jobs.observe(
                    self._uuid, self._parts.options.call_timeout))
        outcomes = [(entry, block_verdict.outcome(
            entry, known.observation.disks or (), known.runs))
            for entry in known.entries]
        if known.transient or (known.runs and _took_over(outcomes)):
            self._define(self._definition(known, outcomes))
        unknown = None
        for entry, outcome in outcomes:
            if outcome is Outcome.UNKNOWN:
                unknown = (
                    'whether the %s of %s was done is not known: disk %s has '
                    'another source; nothing is deleted' % (
                        entry.operation, entry.subject, entry.disk))
            else:
                self._end_operation(entry, outcome, known)
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
        changed = any(outcome is not Outcome.NOT_DONE
                      for _, outcome in outcomes)
        if xml is None or changed:
            # of a domain that is defined, "inactive" is what it was
            xml = self._parts.jobs.xml(
                self._uuid, self._parts.options.call_timeout,
                inactive=known.transient, secure=True)
        return domain_xml.without_mirrors(xml)

    @staticmethod
    def _journaled_definition(known):
        # the first operation has found the domain as it was
        return next((entry.domain_xml for entry in known.entries
                     if entry.domain_xml), None)

    # ---- the operations

    def _end_operation(self, entry, outcome, known):
        if entry.phase == journal.FREEZING:
            self._thaw()
        if outcome is Outcome.DONE:
            if known.runs:
                resize(self._parts, self._uuid, entry)
            self._parts.blocks.finish(self._instance, entry)
        else:
            if entry.operation == journal.LIVE_SNAPSHOT and entry.target:
                _remove_snapshot(self._parts, self._uuid, entry.target,
                                 known.observation.disks or ())
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

    def _delete_images(self):
        """Delete images of which the journal knows nothing."""
        try:
            self._parts.blocks.delete_unfinished_images(self._instance)
        except Exception as e:
            LOG.warning('Whether Glance waits for an image of it is not '
                        'known: %s', e, instance=self._instance)


def take_over(parts, uuid, entry):
    """Let a running guest's definition and size be those of its new volume.

    :param parts: a :class:`nova_migration_guard.parts.Parts`
    :param uuid: the instance's UUID
    :param entry: the :class:`nova_migration_guard.journal.BlockOperation`
    :raises Exception: what libvirt raises
    """
    timeout = parts.options.call_timeout
    parts.jobs.define(uuid, domain_xml.without_mirrors(
        parts.jobs.xml(uuid, timeout, secure=True)), timeout)
    resize(parts, uuid, entry)


def resize(parts, uuid, entry):
    """Let a running guest see the size of its new volume.

    The arguments are those of :func:`take_over`.
    """
    if entry.details.get('resize_to'):
        parts.jobs.resize(uuid, entry.disk, entry.details['resize_to'] * GIB,
                          parts.options.call_timeout)


def _took_over(outcomes):
    """Whether a guest uses another volume than its definition may name."""
    return any(entry.operation == journal.VOLUME_SWAP and
               outcome is Outcome.DONE for entry, outcome in outcomes)


def _remove_snapshot(parts, uuid, path, disks):
    """Remove the folder that Nova has made for one live snapshot.

    :param parts: a :class:`nova_migration_guard.parts.Parts`
    :param uuid: the instance's UUID
    :param path: of the image in it
    :param disks: those of the guest, whose images are not touched
    """
    folder = os.path.realpath(os.path.dirname(path))
    root = os.path.realpath(parts.blocks.snapshot_folder)
    if os.path.dirname(folder) != root:
        LOG.warning('%s is not removed, since it is not in %s.', path, root,
                    instance_uuid=uuid)
        return
    used = [image for disk in disks for image in disk.chain
            if os.path.realpath(image).startswith(folder + os.sep)]
    if used:
        LOG.warning('%s is not removed, since the guest uses %s.', folder,
                    ', '.join(used), instance_uuid=uuid)
    elif os.path.isdir(folder):
        shutil.rmtree(folder)


def abandon(parts, uuid, instance, entries):
    """End the block operations of an instance that is not here any more.

    :param parts: a :class:`nova_migration_guard.parts.Parts`
    :param uuid: the instance's UUID
    :param instance: a ``nova.objects.Instance``, or None when it is deleted
    :param entries: the journal's
        :class:`nova_migration_guard.journal.BlockOperation`
    :returns: the :class:`nova_migration_guard.verdict.Ruling` HOLD when an
        operation cannot be ended, or None
    :raises Exception: what a service raises
    """
    unknown = None
    for entry in entries:
        if entry.phase == journal.PIVOTING:
            unknown = block_verdict.not_known(
                'the instance is not here any more', entry)
            continue
        if entry.operation == journal.LIVE_SNAPSHOT and entry.target:
            seen = parts.jobs.observe(uuid, parts.options.call_timeout)
            if seen.disks is None:
                unknown = block_verdict.hold(
                    'libvirt does not say which images are used (%s)' %
                    seen.trouble)
                continue
            _remove_snapshot(parts, uuid, entry.target, seen.disks)
        parts.blocks.undo(instance, entry)
        parts.journal.end(uuid, entry.subject)
    return unknown
