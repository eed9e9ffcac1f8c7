# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Plots of cost over size, as plain SVG."""

import math
from xml.sax import saxutils

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 50
COLOURS = ('#555555', '#0b6fa4', '#b5482a')


def _ticks(values):
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _scale(value, low, high, begin, end):
    return begin + (math.log10(value) - low) / (high - low) * (end - begin)


def _text(x, y, text, **attributes):
    return '<text x="%.1f" y="%.1f"%s>%s</text>' % (
        x, y, ''.join(' %s="%s"' % (name.replace('_', '-'), value)
                      for name, value in sorted(attributes.items())),
        saxutils.escape(text))


def plot(title, across, up, lines):
    """Draw lines over two logarithmic axes.

    :param title: of the plot
    :param across: what the x axis shows
    :param up: what the y axis shows
    :param lines: {name: [(x, y)]}, all greater than 0
    :returns: the SVG's text
    """
    xs = _ticks([x for line in lines.values() for x, _ in line])
    ys = _ticks([y for line in lines.values() for _, y in line])

    def at(x, y):
        return (_scale(x, xs[0], xs[1], LEFT, WIDTH - RIGHT),
                _scale(y, ys[0], ys[1], HEIGHT - BOTTOM, TOP))
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
        'viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (
            WIDTH, HEIGHT, WIDTH, HEIGHT),
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(WIDTH / 2, 20, title, text_anchor='middle', font_size=14),
        _text(WIDTH / 2, HEIGHT - 10, across, text_anchor='middle'),
        _text(0, 0, up, text_anchor='middle',
              transform='translate(16 %d) rotate(-90)' % (HEIGHT / 2))]
    for power in range(xs[0], xs[1] + 1):
        x, y = at(10.0 ** power, 10.0 ** ys[0])
        parts.append('<path d="M%.1f %.1fV%d" stroke="#dddddd"/>' % (
            x, y, TOP))
        parts.append(_text(x, y + 16, '%g' % 10.0 ** power,
                           text_anchor='middle'))
    for power in range(ys[0], ys[1] + 1):
        x, y = at(10.0 ** xs[0], 10.0 ** power)
        parts.append('<path d="M%.1f %.1fH%d" stroke="#dddddd"/>' % (
            x, y, WIDTH - RIGHT))
        parts.append(_text(x - 6, y + 4, '%g' % 10.0 ** power,
                           text_anchor='end'))
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [at(x, y) for x, y in line]
        parts.append('<polyline fill="none" stroke="%s" stroke-width="2" '
                     'points="%s"/>' % (colour, ' '.join(
                         '%.1f,%.1f' % point for point in points)))
        parts.extend('<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (
            point + (colour,)) for point in points)
        parts.append(_text(LEFT + 12, TOP + 16 * (number + 1), name,
                           fill=colour))
    return '\n'.join(parts + ['</svg>', ''])
