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

from html import parser
import os
import stat
from xml.etree import ElementTree

import fixtures
import testtools

from tests.replay import page
from tests.replay import picture
from tests.replay import timeline
from tests.unit.replay import samples

_RECORDS = (samples.restart_stock, samples.restart_guarded,
            samples.race_stock, samples.race_guarded)


def _runs():
    return [timeline.from_dict(record()) for record in _RECORDS]


class _Nesting(parser.HTMLParser):
    """Checks that what is opened is closed, and notes what is loaded."""

    _ALONE = ('meta', 'br', 'rect', 'line', 'polygon')

    def __init__(self):
        super().__init__()
        self.open = []
        self.loads = []
        self.ids = []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.loads.extend(attrs[name] for name in ('src', 'data')
                          if name in attrs)
        if tag in ('link', 'script', 'iframe', 'img'):
            self.loads.append(tag)
        if 'id' in attrs:
            self.ids.append(attrs['id'])
        if tag not in self._ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag in self._ALONE:
            return
        if not self.open or self.open.pop() != tag:
            raise AssertionError('</%s> closes nothing' % tag)


class RenderTestCase(testtools.TestCase):

    def test_is_well_formed_and_stands_alone(self):
        checker = _Nesting()
        text = page.render(_runs())
        checker.feed(text)
        checker.close()
        self.assertEqual([], checker.open)
        self.assertEqual([], checker.loads)
        self.assertEqual(len(set(checker.ids)), len(checker.ids))
        self.assertNotIn('url(', text)
        self.assertNotIn('@import', text)

    def test_shows_every_run(self):
        text = page.render(_runs())
        self.assertEqual(4, text.count('<svg '))
        for words in ('LOST DISK', 'VF GIVEN TWICE', 'stock nova 34.0.0',
                      'guarded nova 34.0.0', 'prefers-color-scheme: dark'):
            self.assertIn(words, text)

    def test_everything_is_there_as_text(self):
        text = page.render(_runs()[:1])
        table = text[text.index('<details>'):]
        for words in ('takes it for the end of the migration to host-c',
                      'no disk', 'as before', 'nothing',
                      'Nova looks for the guest on host-c'):
            self.assertIn(words, table)

    def test_escapes_what_scenarios_say(self):
        record = samples.race_stock()
        evil = '<script>alert(1)</script> & "so"'
        record.update(verdict=evil, scenario=evil, release=evil)
        for event in record['events']:
            event.update(actor=evil, what=evil, nova=evil,
                         hosts={evil: evil})
        text = page.render([timeline.from_dict(record)])
        self.assertEqual(0, text.count('<script'))
        checker = _Nesting()
        checker.feed(text)
        checker.close()
        self.assertEqual([], checker.open)


class PictureTestCase(testtools.TestCase):

    def _picture(self, record):
        svg = picture.Picture(timeline.from_dict(record)).svg('p')
        return ElementTree.fromstring(svg)  # noqa: S314 - it is our own

    def test_is_named_and_described(self):
        root = self._picture(samples.restart_stock())
        self.assertEqual('img', root.get('role'))
        self.assertEqual('p-t p-d', root.get('aria-labelledby'))
        told = root.find("desc[@id='p-d']").text
        self.assertIn('After 3.6 s: nova-compute on host-a takes it', told)
        self.assertIn('Wrong: Nova looks for the guest', told)

    def test_one_arrow_for_each_row_with_a_job(self):
        root = self._picture(samples.restart_stock())
        self.assertEqual(4, len(root.findall("polygon[@class='job']")))

    def test_nothing_is_drawn_outside(self):
        for record in _RECORDS:
            root = self._picture(record())
            _, _, width, height = map(float, root.get('viewBox').split())
            for box in root.iter('rect'):
                if box.get('class') == 'alarm':
                    # it reaches into the margin, on purpose
                    continue
                self.assertTrue(float(box.get('x')) >= 0)
                self.assertTrue(float(box.get('x')) +
                                float(box.get('width')) <= width)
                self.assertTrue(float(box.get('y')) +
                                float(box.get('height')) <= height)

    def test_device_of_two_guests_alarms(self):
        root = self._picture(samples.race_stock())
        self.assertEqual(1, len(root.findall("rect[@class='note bad']")))
        root = self._picture(samples.race_guarded())
        self.assertEqual(0, len(root.findall("rect[@class='note bad']")))

    def test_guest_and_disk_have_places_of_their_own(self):
        root = self._picture(samples.restart_stock())
        places = {look: {float(box.get('x')) for box in root.findall('rect')
                         if box.get('class').startswith('bar ' + look)}
                  for look in ('guest', 'disk')}
        # the guest of host-a and host-b; the disk of host-c, too
        self.assertEqual(2, len(places['guest']))
        self.assertEqual(3, len(places['disk']))
        self.assertFalse(places['guest'] & places['disk'])

    def test_nova_compute_that_is_down_has_a_strip(self):
        root = self._picture(samples.restart_stock())
        self.assertEqual(1, len(root.findall("rect[@class='strip plain']")))
        self.assertEqual(1, len(root.findall("rect[@class='note plain']")))

    def test_held_server_looks_held(self):
        root = self._picture(samples.restart_guarded())
        self.assertEqual(1, len(root.findall("rect[@class='nova held']")))

    def test_job_to_a_host_without_a_lane(self):
        record = samples.race_stock()
        record['events'][0]['hosts']['host-b'] = 'job -> host-z 3 %'
        root = self._picture(record)
        self.assertEqual(1, len(root.findall("polygon[@class='job']")))

    def test_no_hosts(self):
        record = samples.race_stock()
        for event in record['events']:
            event['hosts'] = {}
        self._picture(record)


class FileTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path

    def _path(self, *parts):
        return os.path.join(self.folder, *parts)

    def test_check_leaves_nothing(self):
        page.check(self._path('page.html'))
        self.assertEqual([], os.listdir(self.folder))

    def test_check_refuses(self):
        for path, words in ((self._path('no', 'page.html'), 'no folder'),
                            (self.folder, 'is a folder'),
                            ('', 'name of a file'), ('-', 'name of a file')):
            exc = self.assertRaises(OSError, page.check, path)
            self.assertIn(words, str(exc))

    def test_check_takes_a_device(self):
        page.check('/dev/null')
        page.write('/dev/null', _runs())
        self.assertTrue(stat.S_ISCHR(os.stat('/dev/null').st_mode))

    def test_write_replaces_and_leaves_no_part(self):
        path = self._path('page.html')
        with open(path, 'w') as stream:
            stream.write('old')
        page.write(path, _runs())
        self.assertEqual(['page.html'], os.listdir(self.folder))
        with open(path, encoding='utf-8') as stream:
            self.assertEqual(page.render(_runs()), stream.read())
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(0o666 & ~mask,
                         stat.S_IMODE(os.stat(path).st_mode))

    def test_write_keeps_a_link(self):
        os.symlink(self._path('target.html'), self._path('page.html'))
        page.write(self._path('page.html'), _runs())
        self.assertTrue(os.path.islink(self._path('page.html')))
        self.assertTrue(os.path.isfile(self._path('target.html')))
