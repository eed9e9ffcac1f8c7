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

import io
import threading
import time

import fixtures

from nova_migration_guard.cmd import app
from nova_migration_guard.cmd import errors
from nova_migration_guard.cmd import held as held_commands
from nova_migration_guard import facts
from nova_migration_guard import held
from nova_migration_guard import release
from nova_migration_guard import words
from tests.unit.cmd import base


class ReleaseTestCase(base.CommandTestCase):

    def setUp(self):
        super(ReleaseTestCase, self).setUp()
        self.words = words.Words(str(self.parent), base.HOST)
        self.libvirt.domains[base.UUID] = base.Domain(base.UUID)
        self.useFixture(fixtures.MockPatchObject(
            held_commands, 'POLL_INTERVAL', 0.01))

    def release(self, *options, **kwargs):
        return ('held', 'release', base.UUID, '--keep',
                kwargs.get('keep', 'source')) + options

    def must_not_be_written(self):
        self.assertIsNone(self.words.read(base.UUID))

    def test_nova_compute_is_down(self):
        self.hold()
        self.must_fail(errors.PENDING, 'when it starts',
                       *self.release('--yes', '--yes'))
        word = self.words.read(base.UUID)
        self.assertEqual(release.Keep.SOURCE, word.keep)
        self.assertAlmostEqual(time.time(), word.at, delta=60)

    def _answer(self, answer):
        """Be a nova-compute that answers."""
        self.records.show_running()
        self.hold()

        def run():
            while self.words.read(base.UUID) is None:
                time.sleep(0.01)
            answer()
            self.words.remove(base.UUID)
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)

    def test_carried_out(self):
        self._answer(lambda: self.records.remove(base.UUID))
        self.assertEqual(0, self.run_command(
            *self.release('--yes', '--yes')), self.stderr)
        self.assertIn('not held any more', self.stdout)

    def test_refused_by_nova_compute(self):
        self._answer(lambda: self.records.write(
            base.UUID, held.Held('why'), base.known(), 'it may run there'))
        self.must_fail(errors.REFUSED, 'it may run there',
                       *self.release('--yes', '--yes'))

    def test_not_answered(self):
        self.records.show_running()
        self.hold()
        self.must_fail(errors.PENDING, 'not carried it out yet',
                       *self.release('--yes', '--yes', '--wait', '0.1'))

    def test_refused_before_it_is_written(self):
        self.hold(peer=facts.Peer.RUNS)
        for keep in ('source', 'destination'):
            self.must_fail(errors.REFUSED, 'twice',
                           *self.release('--yes', '--yes', keep=keep))
        self.must_not_be_written()

    def test_refused_while_a_job_runs(self):
        self.hold()
        self.libvirt.domains[base.UUID] = base.Domain(
            base.UUID, jobStats={'type': 2, 'operation': 5})
        self.must_fail(errors.REFUSED, 'it has to end first',
                       *self.release('--yes', '--yes'))

    def test_refused_in_report_mode(self):
        self.hold()
        self.config.write_text(self.config.read_text() + 'mode = report\n')
        self.must_fail(errors.REFUSED, 'mode is report',
                       *self.release('--yes', '--yes'))

    def _answer_questions(self, text, *options):
        stdout, stderr = io.StringIO(), io.StringIO()
        status = app.main(
            ['--config-file', str(self.config)] +
            list(self.release(*options)), stdin=io.StringIO(text),
            stdout=stdout, stderr=stderr)
        return status, stderr.getvalue()

    def test_asked_twice(self):
        self.hold()
        for text in ('', 'no\n', 'yes\n', 'yes\nyes\n'):
            status, said = self._answer_questions(text)
            self.assertEqual(errors.FAILED, status)
            self.assertIn('nothing was written', said)
        status, _ = self._answer_questions('no\n', '--yes')
        self.assertEqual(errors.FAILED, status)
        self.must_not_be_written()
        status, said = self._answer_questions('yes\n%s\n' % base.UUID)
        self.assertEqual(errors.PENDING, status)
        self.assertIn('Keep its guest at the source, host-a, and end what '
                      'there is of it at host-b?', said)

    def test_usage(self):
        self.hold()
        self.must_fail(errors.USAGE, '--keep', 'held', 'release', base.UUID)
        self.must_fail(errors.USAGE, 'both', *self.release(keep='both'))

    def test_not_held(self):
        self.must_fail(errors.NOT_FOUND, 'is not held',
                       *self.release('--yes', '--yes'))

    def test_no_rights(self):
        self.hold()
        self.as_nobody()
        self.must_fail(errors.NO_RIGHTS, 'for root only',
                       *self.release('--yes', '--yes'))

    def test_word_about_an_earlier_hold(self):
        self.hold()
        self.words.write(words.now(base.UUID, base.HOST,
                                   release.Keep.SOURCE, 'root'))
        self.assertEqual([base.UUID], self.words.new())
        self.assertEqual([], self.words.new())
        self.records.remove(base.UUID)
        self.must_not_be_written()
        self.assertFalse(self.words.is_there(base.UUID))

    def test_damaged_word(self):
        self.hold()
        self.words.write(words.now(base.UUID, base.HOST,
                                   release.Keep.SOURCE, 'root'))
        path = self.folder / words.FOLDER / (base.UUID + held.ENDING)
        for text in ('{', '[]', path.read_text().replace('source', 'both'),
                     path.read_text().replace('host-a', 'host-b')):
            path.write_text(text)
            self.must_not_be_written()
            self.assertFalse(path.exists())
