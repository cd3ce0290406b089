#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""instructions.py BUILD [--cpu NAME] [--models DIR]: arm64 instructions of a warmed run, beside the peers.

Counted under emulation, by the difference of two numbers of runs of BUILD/bin/repeat. A count is no time: it leaves out caches,
memory and how many instructions a CPU executes at once. FUSEBOX_PEER_DIR has the peers' arm64 libraries. Exit code 77: skipped.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EMULATOR = 'qemu-aarch64'
NETS = 5
SMALLEST, LARGEST = 300_000, 3_000_000  # bytes of the files


class Counter:
    def __init__(self, build, cpu, work):
        self.build, self.plugin = build, work / 'count.so'
        self.command = [EMULATOR, '-L', str(build.parent / 'arm64-root'), '-cpu', cpu, '-plugin', str(self.plugin)]
        subprocess.run(['cc', '-std=c11', '-O2', '-shared', '-fPIC', '-fvisibility=hidden', '-o', self.plugin,
                        HERE / 'count_instructions.c'], check=True)

    def total(self, runs, job):
        done = subprocess.run([*self.command, str(self.build / 'bin/repeat'), str(runs), *job], capture_output=True, text=True)
        counted = re.search(r'^instructions (\d+)$', done.stderr, re.MULTILINE)
        if done.returncode or not counted:
            raise RuntimeError(done.stderr.strip() or f'exit status {done.returncode}')
        return int(counted[1])

    def per_run(self, job, more=4):
        return (self.total(2 + more, job) - self.total(2, job)) / more


def skip(why):
    print(f'SKIP: {why}')
    sys.exit(77)


def row(counter, name, engines, job):
    counts = {}
    for engine in engines:
        try:
            counts[engine] = counter.per_run(job(engine))
        except RuntimeError as error:
            print(f'{name}: {engine}: {error}', file=sys.stderr)
    ours = counts.get('ours')
    cells = [f'{counts[e] / 1e6:.2f}' + (f' ({ours / counts[e]:.2f})' if e != 'ours' and ours else '') if e in counts else '-'
             for e in engines]
    print(f'| {name} | ' + ' | '.join(cells) + ' |', flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument('build', type=pathlib.Path)
    arguments.add_argument('--cpu', default='neoverse-n1')
    arguments.add_argument('--models', type=pathlib.Path)
    given = arguments.parse_args()
    if not shutil.which(EMULATOR):
        skip(f'{EMULATOR} is not installed; the static emulator has no plugins (Debian: qemu-user)')
    if not os.environ.get('FUSEBOX_PEER_DIR'):
        skip('FUSEBOX_PEER_DIR is not set')
    with tempfile.TemporaryDirectory() as work:
        counter = Counter(given.build.resolve(), given.cpu, pathlib.Path(work))
        print(f'Millions of instructions of one run on {given.cpu}, emulated; in brackets: ours / theirs.\n')
        print('| job | ours | TFLite | ONNX Runtime |\n|---|---|---|---|')
        for units in (64, 128, 256):
            row(counter, f'LSTM f32, 128 steps, {units} units', ('ours', 'tflite', 'onnx'),
                lambda engine, n=units: ['lstm', engine, str(n)])
        for units in (64, 128, 256, 512):
            row(counter, f'LSTM with 8-bit weights, 128 steps, {units} units', ('ours', 'tflite', 'onnx'),
                lambda engine, n=units: ['lstm8', engine, str(n)])
        for units in (64, 128, 256, 512):
            row(counter, f'LSTM in integers, 128 steps, {units} units', ('ours', 'tflite'),
                lambda engine, n=units: ['lstm_int', engine, str(n)])
        if given.models:
            files = [f for f in sorted(given.models.rglob('*.tflite')) if SMALLEST < f.stat().st_size < LARGEST]
            plugins = [str(given.build.resolve() / 'plugins' / 'fusebox.xnnpack')]
            print('\n| net | ours + XNNPACK | TFLite + XNNPACK |\n|---|---|---|')
            for file in files[::max(1, len(files) // NETS)][:NETS]:
                row(counter, file.name, ('ours', 'xnnpack'), lambda engine, f=file: ['net', engine, str(f), *plugins])


if __name__ == '__main__':
    main()
