#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""same.py FUSEBOX [--rounds N] [--record FILE] [PLUGIN OPTION...] -- PAIR...: how `fusebox bench A B` judges pairs of files.

A PAIR is a file, which is measured beside itself, or FILE:SLOWER. Each one runs N times (default 5) on kernels and on the default
delegates, with one and two threads. Prints the verdicts, and how many runs found a difference; --record appends the ratios of the
processes of each run to a file, for tests/cli/bench_series.txt.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

JOBS = [(delegate, threads) for delegate in ('none', 'default') for threads in (1, 2)]


def measure(fusebox, plugins, pair, delegate, threads):
    """The second contestant."""
    a, _, b = pair.partition(':')
    chosen = [] if delegate == 'default' else ['--delegate', delegate]
    command = [fusebox, 'bench', a, b or a, '--num_threads', str(threads), '--json', *plugins, *chosen]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)['contestants'][1]


def main(words):
    split = words.index('--')
    parser = argparse.ArgumentParser(prog='same.py', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('fusebox')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--record', type=pathlib.Path)
    arguments, plugins = parser.parse_known_args(words[:split])
    verdicts = collections.defaultdict(collections.Counter)
    for number in range(arguments.rounds):
        for pair in words[split + 1:]:
            name = ':'.join(pathlib.Path(file).stem for file in pair.split(':'))
            for delegate, threads in JOBS:
                found = measure(arguments.fusebox, plugins, pair, delegate, threads)
                ratio = found['ratio']
                verdicts['pairs' if ':' in pair else 'same'][ratio['verdict']] += 1
                print(f'{name:40} {found["delegates"]:8} {threads} {found["runs"]["p50_us"]:10.1f} us  {ratio["value"]:.3f}  '
                      f'{ratio["low"]:.3f} to {ratio["high"]:.3f}  {ratio["verdict"]}', flush=True)
                if arguments.record:
                    with arguments.record.open('a') as out:
                        print(name, found['delegates'], threads, *(f'{r:.4f}' for r in ratio['processes']), file=out)
    for kind, counts in verdicts.items():
        print(f'{kind}: ' + ', '.join(f'{count} {verdict}' for verdict, count in counts.most_common()))


if __name__ == '__main__':
    main(sys.argv[1:])
