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

"""Writes runs as one page of HTML that needs nothing else."""

import html
import itertools
import os
import re
import stat
import tempfile

from tests.replay import catalog
from tests.replay import judge
from tests.replay import page_style
from tests.replay import picture

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%(title)s</title>
<style>%(style)s</style>
</head>
<body>
<header>
<h1>%(title)s</h1>
<p>Known failures of Nova, played on Nova's own test fixtures: stock beside
guarded. Time goes down. A bar is what there is on a host, an arrow is a job
that libvirt runs; a red band marks where Nova's picture and the hosts part
ways. Each picture is there as a table, too.</p>
%(summary)s
</header>
<main>
%(body)s
</main>
</body>
</html>
"""


def _badge(run):
    return '<strong class="badge %s">%s</strong>' % (
        'safe' if run.safe else 'unsafe', html.escape(run.verdict))


def _anchor(run):
    """Return an id for the run: no blanks, nothing to escape."""
    return '%s-%s' % (re.sub(r'[^\w-]+', '-', run.scenario), run.guard)


def _summary(runs):
    rows = ''.join(
        '<tr><th scope="row"><a href="#%s">%s</a></th><td>%s</td>'
        '<td>%s</td></tr>'
        % (_anchor(run), html.escape(run.scenario),
           html.escape(run.title), _badge(run)) for run in runs)
    return ('<table class="summary"><thead><tr><th scope="col">scenario</th>'
            '<th scope="col">nova</th><th scope="col">verdict</th></tr>'
            '</thead><tbody>%s</tbody></table>' % rows)


def _cell(row, column):
    if column not in row.fresh:
        return '<td class="same">as before</td>'
    texts = ['<b>%s</b>' % html.escape(item)
             for item in row.gone.get(column, ())]
    texts.extend('<b>%s</b>' % html.escape(item)
                 if item in row.fresh[column] else html.escape(item)
                 for item in row.cells[column])
    return '<td>%s</td>' % ('<br>'.join(texts) or 'nothing')


def _table(run):
    """The run as a table: all that the picture shows, as text."""
    head = ''.join('<th scope="col">%s</th>' % html.escape(name)
                   for name in ['time', 'what happens'] + run.columns)
    rows = []
    for row in run.rows():
        wrong = judge.wrong(row)
        told = '<b>%s</b> %s%s' % (
            html.escape(row.event.actor), html.escape(row.event.what),
            ''.join('<br><em>%s</em>' % html.escape(text)
                    for text in wrong))
        rows.append('<tr%s><th scope="row">%.1f&nbsp;s</th><td>%s</td>%s'
                    '</tr>' % (' class="alarm"' if wrong else '',
                               row.clock, told,
                               ''.join(_cell(row, column)
                                       for column in run.columns)))
    return ('<details><summary>the same as a table</summary>'
            '<div class="scroll"><table><caption>%s: %s</caption><thead><tr>'
            '%s</tr></thead><tbody>%s</tbody></table></div></details>'
            % (html.escape(run.scenario), html.escape(run.title), head,
               ''.join(rows)))


def _run(run):
    return (
        '<article id="%s"><h3>%s %s</h3><div class="picture">%s</div>'
        '<p class="verdict">%s %s</p>%s</article>'
        % (_anchor(run), html.escape(run.title), _badge(run),
           picture.Picture(run).svg(_anchor(run)), _badge(run),
           html.escape(catalog.meaning(run.verdict)), _table(run)))


def _scenario(name, runs):
    info = catalog.known(name)
    report = ''
    if info.report:
        link = html.escape(info.report)
        report = ' <a href="%s">%s</a>' % (link, link.split('//')[-1])
    runs = sorted(runs, key=lambda run: run.guard == 'on')
    return ('<section><h2><code>%s</code> %s</h2><p class="story">%s%s</p>'
            '<div class="pair">%s</div></section>'
            % (html.escape(name), html.escape(info.title),
               html.escape(info.story), report,
               ''.join(_run(run) for run in runs)))


def render(runs):
    """Return the page of a list of runs."""
    sections = [_scenario(name, list(group)) for name, group in
                itertools.groupby(runs, key=lambda run: run.scenario)]
    releases = sorted({run.release for run in runs})
    return _PAGE % {
        'title': 'nova-migration-guard on nova ' + ', '.join(
            html.escape(release) for release in releases),
        'style': page_style.CSS,
        'summary': _summary(runs),
        'body': '\n'.join(sections),
    }


def _is_special(path):
    """Whether a path is there and is a device or a pipe."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def check(path):
    """Find out now whether write() will be able to write.

    :raises OSError: it will not
    """
    if not path or path.startswith('-'):
        raise OSError('is not the name of a file')
    if os.path.isdir(path):
        raise IsADirectoryError(0, 'is a folder')
    if _is_special(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(0, 'cannot be written')
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(0, 'there is no folder ' + folder)
    number, probe = tempfile.mkstemp(dir=folder, prefix='.replay-')
    os.close(number)
    os.unlink(probe)


def write(path, runs):
    """Write the page; a reader never sees half of it.

    :raises OSError: it cannot be written
    """
    text = render(runs)
    if _is_special(path):
        with open(path, 'w', encoding='utf-8') as stream:
            stream.write(text)
        return
    path = os.path.realpath(path)
    number, part = tempfile.mkstemp(dir=os.path.dirname(path),
                                    prefix='.replay-', suffix='.html')
    try:
        with os.fdopen(number, 'w', encoding='utf-8') as stream:
            stream.write(text)
        # mkstemp lets nobody else read; a page is for others, too
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
