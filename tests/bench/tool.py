#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tool.py FUSEBOX NET_BENCH SECONDS PLUGIN... -- FILE...: whether `fusebox bench` measures what net_bench measures.

The two run in turns, each in a process of its own on one thread, and write rows for report.py. The lines of `fusebox bench` are read
in the way of scripts that read benchmark_model's.
"""
import json
import pathlib
import re
import statistics
import subprocess
import sys

ROUNDS = 20
MEASURED = re.compile(r'^count=(\d+) .*avg=([\d.e+]+) std=\S+$', re.M)  # of the warm-up, then of the measured runs
PERCENTILES = re.compile(r'^Percentiles in us: p50: ([\d.e+]+),', re.M)
TIMINGS = re.compile(r'^Inference timings in us: Init: [\d.e+]+, First inference: [\d.e+]+, Warmup \(avg\): [\d.e+]+, '
                     r'Inference \(avg\): ([\d.e+]+)$', re.M)


def output_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def by_tool(fusebox, plugins, seconds, file):
    """The median in ms, read from the text."""
    text = output_of([fusebox, 'bench', f'--graph={file}', '--num_threads=1', '--num_runs=10', f'--min_secs={seconds}',
                      '--warmup_min_secs=0.1', *plugins])
    counts = MEASURED.findall(text)
    if len(counts) != 2 or float(TIMINGS.search(text)[1]) != float(counts[1][1]):
        raise ValueError(f'{file}: the lines of benchmark_model are expected, found:\n{text}')
    return float(PERCENTILES.search(text)[1]) / 1e3


def by_harness(net_bench, plugins, seconds, file):
    rows = [json.loads(line) for line in
            output_of([net_bench, *plugins, '--alone', '--seconds', str(seconds), file]).splitlines()]
    return statistics.median(row['value'] for row in rows)


def main(words):
    split = words.index('--')
    fusebox, net_bench, seconds, *plugins = words[:split]
    sides = [('ours', by_tool, fusebox), ('harness', by_harness, net_bench)]
    for file in words[split + 1:]:
        job = {'bench': 'tool', 'job': pathlib.Path(file).stem}
        try:
            for number in range(ROUNDS):
                row = job | {'metric': 'run', 'unit': 'ms', 'round': number}
                for who, measure, program in sides if number % 2 else reversed(sides):
                    print(json.dumps(row | {'runner': who, 'value': measure(program, plugins, seconds, file)}), flush=True)
        except subprocess.CalledProcessError as failed:
            print(json.dumps(job | {'runner': 'neither', 'error': failed.stderr.strip() or failed.stdout.strip()}), flush=True)


if __name__ == '__main__':
    main(sys.argv[1:])
