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

"""What the start asks of libvirt: each call counted."""

import collections
import threading

from oslotest import base

from nova_migration_guard import connections
from nova_migration_guard import libvirt_jobs
from nova_migration_guard import workers
from tests.unit import test_libvirt_jobs as fakes

State = libvirt_jobs.State


class Domain(fakes.Domain):
    def __init__(self, uuid, **answers):
        super(Domain, self).__init__(UUIDString=uuid, **answers)


class Connection(object):
    def __init__(self, host):
        self.host = host

    def getLibVersion(self):
        return 9000000

    def lookupByUUIDString(self, uuid):
        self.host.calls['lookup'] += 1
        if uuid not in self.host.domains:
            raise fakes.Error(libvirt_jobs.NO_DOMAIN)
        return self.host.domains[uuid]

    def listAllDomains(self, flags):
        self.host.calls['listing'] += 1
        found = [domain for domain in self.host.domains.values()
                 if flags != 8 or not domain.answers['isPersistent']]
        if self.host.after_listing:
            self.host.after_listing.pop()()
        return found

    def getAllDomainStats(self, stats):
        self.host.calls['states'] += 1
        if self.host.states_error:
            raise self.host.states_error
        return [(domain, {'state.state': domain.answers['state'][0],
                          'state.reason': domain.answers['state'][1]})
                for domain in self.host.domains.values()]


class Host(object):
    def __init__(self, *domains):
        self.domains = {domain.answers['UUIDString']: domain
                        for domain in domains}
        self.calls = collections.Counter()
        self.after_listing = []
        self.states_error = None
        self.jobs = libvirt_jobs.LibvirtJobs(
            connections.Connections(lambda: Connection(self), fakes.Error),
            fakes.Error, workers.Workers(4))

    def survey(self, wanted=(), in_flight=(), timeout=5):
        return self.jobs.survey(wanted, set(in_flight), timeout, 10)


def asked(domain):
    """How often each question was asked that libvirtd has to answer."""
    return collections.Counter(
        name for name in domain.asked if name not in ('UUIDString', 'ID'))


class SurveyTestCase(base.BaseTestCase):

    def test_many_idle_domains(self):
        host = Host(*[Domain(str(number)) for number in range(50)])
        seen = host.survey()
        self.assertEqual(50, len(seen))
        for uuid, domain in host.domains.items():
            # three of its four disks can have a job
            self.assertEqual(
                {'XMLDesc': 1, 'jobStats': 1, 'blockJobInfo': 3},
                asked(domain))
            self.assertEqual(State.RUNNING, seen[uuid].state)
            self.assertTrue(seen[uuid].persistent)
            self.assertFalse(seen[uuid].job.active)
            self.assertEqual((), seen[uuid].block_jobs)
        self.assertEqual({'listing': 2, 'states': 1, 'lookup': 50},
                         host.calls)

    def test_domain_that_is_off(self):
        host = Host(Domain('off', state=[5, 1], ID=-1))
        seen = host.survey()['off']
        self.assertEqual({}, asked(host.domains['off']))
        self.assertEqual((State.SHUTOFF, 1), (seen.state, seen.reason))
        self.assertFalse(seen.job.active)
        self.assertEqual((), seen.block_jobs)

    def test_domain_that_is_not_there(self):
        self.assertEqual({'gone': libvirt_jobs.ABSENT},
                         Host().survey(['gone']))

    def test_what_is_in_flight_is_looked_at_closely(self):
        host = Host(Domain('moving'), Domain('idle'))
        host.survey(in_flight=['moving', 'gone'])
        self.assertEqual(2, asked(host.domains['moving'])['state'])
        self.assertEqual(2, asked(host.domains['moving'])['XMLDesc'])
        self.assertEqual(0, asked(host.domains['idle'])['state'])

    def test_job_that_nobody_expects(self):
        jobs = {'migration': {'jobStats': {'type': 2, 'operation': 5}},
                'incoming': {'jobStats': fakes.Error(84), 'state': [3, 2]},
                'copy': {'blockJobInfo': {'type': 2}}}
        host = Host(*[Domain(name, **answers)
                      for name, answers in jobs.items()])
        seen = host.survey()
        self.assertTrue(seen['migration'].job.active)
        self.assertEqual(libvirt_jobs.Operation.MIGRATION_IN,
                         seen['incoming'].job.operation)
        self.assertEqual(3, len(seen['copy'].block_jobs))

    def test_domain_that_vanishes_after_the_listing(self):
        host = Host(Domain('a'), Domain('b'))
        host.after_listing.append(lambda: host.domains.pop('a'))
        seen = host.survey(['a', 'b'])
        self.assertEqual(libvirt_jobs.ABSENT, seen['a'])
        self.assertTrue(seen['b'].present)

    def test_domain_that_is_transient(self):
        host = Host(Domain('a', isPersistent=0), Domain('b'))
        seen = host.survey()
        self.assertIs(False, seen['a'].persistent)
        self.assertIs(True, seen['b'].persistent)

    def test_guest_that_stops_after_its_glance(self):
        """The state is the one after "no job"."""
        host = Host(Domain('a', state=[5, 4]))
        self.assertEqual((State.SHUTOFF, 4), (
            host.survey()['a'].state, host.survey()['a'].reason))

    def test_guest_that_starts_after_the_listing(self):
        host = Host(Domain('a', ID=-1))
        self.assertEqual(State.RUNNING, host.survey()['a'].state)
        self.assertEqual(1, asked(host.domains['a'])['jobStats'])

    def test_one_that_hangs_among_many(self):
        release = threading.Event()
        self.addCleanup(release.set)
        host = Host(Domain('hung', jobStats=lambda flags: release.wait(60)),
                    *[Domain(str(number)) for number in range(100)])
        seen = host.survey(timeout=0.3)
        self.assertEqual(['hung'], [uuid for uuid, one in seen.items()
                                    if one.job is None])
        # what can be known of it all the same
        self.assertEqual(State.RUNNING, seen['hung'].state)
        self.assertEqual(3, len(seen['hung'].disks))
        self.assertIn('no answer', seen['hung'].trouble)
        self.assertEqual(1, asked(host.domains['hung'])['jobStats'])

    def test_states_are_not_told(self):
        host = Host(Domain('a'), Domain('off', state=[5, 1], ID=-1))
        host.states_error = fakes.Error(38)
        seen = host.survey()
        self.assertEqual(State.RUNNING, seen['a'].state)
        self.assertEqual(State.SHUTOFF, seen['off'].state)
