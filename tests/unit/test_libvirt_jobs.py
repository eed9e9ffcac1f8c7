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

import threading

from oslotest import base

from nova_migration_guard import connections
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import workers

UUID = '6d8a2b0e-4c1c-4a53-9f5b-0c1d3a1f7e11'
XML = """
<domain><devices>
  <disk type='file' device='disk'><target dev='vda' bus='virtio'/></disk>
  <disk type='file' device='cdrom'><target dev='hdc' bus='ide'/></disk>
  <disk type='block' device='lun'><target dev='sda' bus='scsi'/></disk>
  <disk type='file'><target dev='vdb' bus='virtio'/></disk>
</devices></domain>
"""


class Error(Exception):
    def __init__(self, code):
        super(Error, self).__init__('libvirt error %s' % code)
        self.code = code

    def get_error_code(self):
        return self.code


class Domain(object):
    """Answers as a test tells it to; an answer may be an exception."""

    def __init__(self, **answers):
        self.asked = []
        self.answers = dict(
            {'state': [1, 1], 'isPersistent': 1, 'isActive': 1,
             'XMLDesc': XML, 'jobStats': {'type': 0}, 'blockJobInfo': {},
             'abortJob': 0, 'suspend': 0, 'ID': 1}, **answers)

    def __getattr__(self, name):
        def answer(*args):
            self.asked.append(name)
            answer = self.answers[name]
            if callable(answer):
                answer = answer(*args)
            if isinstance(answer, Exception):
                raise answer
            return answer
        return answer


class Connection(object):
    def __init__(self, domain):
        self.domain = domain

    def getLibVersion(self):
        return 9000000

    def lookupByUUIDString(self, uuid):
        if isinstance(self.domain, Exception):
            raise self.domain
        return self.domain


class LibvirtJobsTestCase(base.BaseTestCase):

    def jobs(self, domain):
        return libvirt_jobs.LibvirtJobs(
            connections.Connections(lambda: Connection(domain), Error),
            Error, workers.Workers(4))

    def observe(self, domain, timeout=5):
        return self.jobs(domain).observe(UUID, timeout)

    def test_idle_domain(self):
        seen = self.observe(Domain())
        self.assertTrue(seen.present)
        self.assertTrue(seen.persistent)
        self.assertEqual(libvirt_jobs.State.RUNNING, seen.state)
        self.assertFalse(seen.job.active)
        self.assertEqual((), seen.block_jobs)
        self.assertEqual('', seen.trouble)

    def test_migration(self):
        seen = self.observe(Domain(
            jobStats={'type': 2, 'operation': 5, 'time_elapsed': 1500},
            blockJobInfo=lambda disk, flags: {'type': 2}))
        self.assertTrue(seen.job.active)
        self.assertEqual(libvirt_jobs.Operation.MIGRATION_OUT,
                         seen.job.operation)
        self.assertEqual(1.5, seen.job.elapsed)
        self.assertEqual(['vda', 'sda', 'vdb'],
                         [job.disk for job in seen.block_jobs])

    def test_block_job_on_one_disk(self):
        seen = self.observe(Domain(
            blockJobInfo=lambda disk, flags: {'type': 1} if disk == 'vdb'
            else None))
        self.assertEqual((libvirt_jobs.BlockJob(
            'vdb', libvirt_jobs.BlockJobType.PULL),), seen.block_jobs)

    def test_copy_that_is_pivoted_between_two_questions(self):
        """The disks are those after the job, not those before it."""
        texts = ["""
<domain><devices><disk type='file'>
  <source file='%s'/><target dev='vda'/>
</disk></devices></domain>""" % name for name in ('old', 'new')]
        seen = self.observe(Domain(XMLDesc=lambda flags: texts.pop(0)))
        self.assertEqual((), seen.block_jobs)
        self.assertEqual(['new'], [disk.source for disk in seen.disks])

    def test_incoming_side(self):
        domain = Domain(state=[3, 2], jobStats=Error(84))
        seen = self.observe(domain)
        self.assertEqual(libvirt_jobs.Operation.MIGRATION_IN,
                         seen.job.operation)
        self.assertNotIn('blockJobInfo', domain.asked)

    def test_inactive_domain_is_not_asked_for_jobs(self):
        domain = Domain(state=[5, 4])
        seen = self.observe(domain)
        self.assertFalse(seen.job.active)
        self.assertNotIn('jobStats', domain.asked)

    def test_domain_that_is_not_there(self):
        self.assertEqual(libvirt_jobs.ABSENT, self.observe(Error(42)))

    def test_domain_that_vanishes_between_two_questions(self):
        for question in ('XMLDesc', 'jobStats', 'blockJobInfo'):
            domain = Domain(**{question: Error(42)})
            self.assertEqual(libvirt_jobs.ABSENT, self.observe(domain))

    def test_migration_that_ends_between_two_questions(self):
        """The state is the one after the job, not the one before it."""
        states = [[1, 1], [5, 4]]
        seen = self.observe(Domain(
            state=lambda flags: states.pop(0), jobStats=Error(55),
            isActive=0))
        self.assertFalse(seen.job.active)
        self.assertEqual(libvirt_jobs.State.SHUTOFF, seen.state)
        self.assertEqual(4, seen.reason)

    def test_job_that_libvirt_does_not_tell(self):
        for code in (55, 68):
            seen = self.observe(Domain(jobStats=Error(code)))
            self.assertTrue(seen.present)
            self.assertIsNone(seen.job)
            self.assertIn(str(code), seen.trouble)

    def test_hung_monitor(self):
        release = threading.Event()
        self.addCleanup(release.set)
        jobs = self.jobs(Domain(jobStats=lambda flags: release.wait(60)))
        seen = jobs.observe(UUID, 0.1)
        self.assertTrue(seen.present)
        self.assertIsNone(seen.job)
        self.assertIn('no answer', seen.trouble)
        seen = jobs.observe(UUID, 0.1)
        self.assertIsNone(seen.present)
        self.assertIn('an earlier call', seen.trouble)

    def test_libvirt_is_away(self):
        def connection():
            raise ValueError('libvirt is away')
        jobs = libvirt_jobs.LibvirtJobs(
            connections.Connections(connection, Error), Error,
            workers.Workers(1))
        self.assertRaises(ValueError, jobs.domains, 1)
        seen = jobs.observe(UUID, 1)
        self.assertIsNone(seen.present)
        self.assertIn('libvirt is away', seen.trouble)

    def test_newer_libvirt(self):
        seen = self.observe(Domain(jobStats={'type': 2, 'operation': 99},
                                   state=[42, 0]))
        self.assertEqual(99, seen.job.operation)
        self.assertEqual(42, seen.state)

    def running_for(self, looks, abort=0):
        """A migration that is seen to run ``looks`` times, then is gone."""
        left = [{'type': 2, 'operation': 5}] * looks
        return Domain(abortJob=abort, jobStats=lambda flags:
                      left.pop() if left else {'type': 0})

    def test_abort_waits_until_the_job_is_gone(self):
        domain = self.running_for(3)
        seen = self.jobs(domain).abort(UUID, 10)
        self.assertFalse(seen.job.active)
        self.assertEqual(4, domain.asked.count('jobStats'))

    def test_what_abort_raises_does_not_count(self):
        for code in (42, 55, 68):
            seen = self.jobs(self.running_for(1, Error(code))).abort(UUID, 10)
            self.assertFalse(seen.job.active)

    def test_abort_that_does_nothing(self):
        seen = self.jobs(self.running_for(1000)).abort(UUID, 0.3)
        self.assertTrue(seen.job.active)

    def test_job_that_is_cancelled_and_not_gone(self):
        """A destination that does not answer makes it stay like that."""
        for job_type in (3, 4, 5):
            domain = Domain(jobStats={'type': job_type, 'operation': 5})
            seen = self.jobs(domain).abort(UUID, 0.3)
            self.assertTrue(seen.job.active)

    def test_abort_that_hangs(self):
        release = threading.Event()
        self.addCleanup(release.set)
        domain = Domain(abortJob=lambda: release.wait(60))
        seen = self.jobs(domain).abort(UUID, 0.3)
        self.assertIsNone(seen.job)
        self.assertIn('an earlier call', seen.trouble)
