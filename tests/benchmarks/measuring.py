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

"""Pairs of runs, and what comes of them."""

import gc
import json
import os
import statistics
import time


CLOCKS = {'wall': time.perf_counter, 'cpu': time.process_time}


def turn_about(stock, guarded, rounds):
    """Time two things, one after the other, over and over.

    Each goes first in every other round: what the first one leaves in caches
    is to favour neither.

    :param stock: a callable
    :param guarded: a callable
    :param rounds: how often each is run
    :returns: {clock: [(seconds, seconds)]} of stock and guarded; the process's
        CPU time tells more than the time of the wall where others are at work
    """
    pairs = {name: [] for name in CLOCKS}
    for number in range(rounds):
        taken = {}
        order = [stock, guarded]
        for function in order if number % 2 else reversed(order):
            gc.collect()
            begun = {name: clock() for name, clock in CLOCKS.items()}
            function()
            taken[function] = {name: clock() - begun[name]
                               for name, clock in CLOCKS.items()}
        for name in CLOCKS:
            pairs[name].append((taken[stock][name], taken[guarded][name]))
    return pairs


def summary(pairs):
    """What pairs of times say.

    :param pairs: what :func:`turn_about` returned
    :returns: {clock: a dict}: the medians in seconds, and quartiles of the
        ratio
    """
    found = {}
    for name, times in pairs.items():
        ratios = sorted(guarded / stock for stock, guarded in times)
        found[name] = {
            'stock': statistics.median(pair[0] for pair in times),
            'guarded': statistics.median(pair[1] for pair in times),
            'ratio': statistics.median(ratios),
            'lower': ratios[len(ratios) // 4],
            'upper': ratios[-1 - len(ratios) // 4],
            'rounds': len(times)}
    return found


def write(benchmark, **result):
    """Append a result to the file that ``NMG_BENCHMARKS`` names."""
    path = os.environ.get('NMG_BENCHMARKS')
    if path:
        with open(path, 'a') as stream:
            stream.write(json.dumps(dict(result, benchmark=benchmark)) + '\n')
