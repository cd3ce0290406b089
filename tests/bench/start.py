#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""start.py START_BENCH FUSEBOX PLUGINS ROUNDS FILE...: how long each engine takes from a fresh process to its first result.

The engines take turns: ours, stock TFLite, and LiteRT if FUSEBOX_LITERT names its C library (libtensorflowlite_c.so). PLUGINS is a
folder with an index. "run of a process" is `fusebox run`, from its start to its end.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

# Without the time that it takes to load libraries, and with it.
WARM = (('open', 'us'), ('first result', 'us'))
COLD = ((None, None), ('first result, with libraries', 'us'), ('peak memory', 'MB'))


def engines(program, plugins):
    """Name, command before the file, environment."""
    found = [('ours', [program, 'ours', plugins], os.environ), ('TFLite', [program, 'TFLite', '-'], os.environ)]
    if litert := os.environ.get('FUSEBOX_LITERT'):
        folder = os.environ | {'FUSEBOX_PEER_DIR': str(pathlib.Path(litert).resolve().parent)}
        found.append(('LiteRT', [program, 'TFLite', '-'], folder))
    return found


def row(job, metric, unit, runner, number, value):
    print(json.dumps({'bench': 'start', 'job': job, 'metric': metric, 'unit': unit, 'runner': runner, 'round': number,
                      'value': value}), flush=True)


def run_of_process(fusebox, plugins, file):
    start = time.perf_counter()
    done = subprocess.run([fusebox, 'run', file, '--threads', '1'], env=os.environ | {'FUSEBOX_PLUGIN_PATH': plugins},
                          capture_output=True)
    return 1e3 * (time.perf_counter() - start) if done.returncode == 0 else None


def measure(sides, fusebox, plugins, rounds, file):
    path = pathlib.Path(file)
    job = f'{path.parent.name}/{path.stem}'
    for number in range(rounds):
        for who, command, environment in sides if number % 2 else reversed(sides):
            for words, metrics in (([file, 'warm'], WARM), ([file], COLD)):
                done = subprocess.run([*command, *words], env=environment, capture_output=True, text=True)
                if done.returncode == 0:
                    for (metric, unit), value in zip(metrics, done.stdout.split()):
                        if metric:
                            row(job, metric, unit, who, number, float(value))
                elif number == 0:
                    print(json.dumps({'bench': 'start', 'job': job, 'runner': who, 'error': done.stderr.strip()}), flush=True)
        if (taken := run_of_process(fusebox, plugins, file)) is not None:
            row(job, 'run of a process', 'ms', 'ours', number, taken)


def main(words):
    program, fusebox, plugins, rounds, *files = words
    for file in files:
        measure(engines(program, plugins), fusebox, plugins, int(rounds), file)


if __name__ == '__main__':
    main(sys.argv[1:])
