#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD [--quick] [--rounds N] [--all] [--json FILE] [--docs DIR] [NAME...]: runs the benchmarks of a build tree.

Every benchmark runs N times, in turns with the others (default 3, with --quick 1 and less of each). Then the table of report.py is
printed; --all adds the rows without a line in margins.tsv, --json writes everything to a file, --docs writes the pages and pictures of docs.
FUSEBOX_PEER_DIR holds the peers, FUSEBOX_MODELS a folder of .tflite files; FUSEBOX_LITERT names a C library of LiteRT, one more peer of files
and start. NAMEs: lstm threads open imports net files kernels cache
convert cancel door hosted nn conv_lstm decoder tool python placement start.
Exit status: that of report.py.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

import plot
import report

SAMPLES = ('conv_relu', 'dense', 'counter', 'lstm_states', 'keras_lstm', 'gru')
RECURRENT = ('keras_lstm', 'gru', 'iteam1_lstm', 'legobridge_lstm')  # also opened as loops of built-in ops
REAL = {'iteam1_lstm': 'savedmodel/iteam1__predict-series-data-with-RNN/lstm_model',  # below FUSEBOX_MODELS
        'legobridge_lstm': 'savedmodel/legobridge__movie-genre-classification/models/lstm_model',
        'legobridge_nn': 'savedmodel/legobridge__movie-genre-classification/models/nn_model'}
QUANTIZED = ('mobilenet_v1_0.5_160_quant', 'mobilenet_v1_0.75_192_quant', 'mobilenet_quant_v1_224_head_layers',
             'movenet_single_pose_lightning_ptq', 'model_ToyCar_quant_fullint')  # .tflite files below FUSEBOX_MODELS
QUICK_SECONDS = 170
SMALLEST, MOST_QUICK = 400_000, 4  # files of models: least size, and how many with --quick
TOOL_FILES = 12
STARTED = 39  # files beside a small LSTM
SMALLEST_PLACED, LARGEST_PLACED = 20_000, 40_000_000


class Failure(Exception):
    pass


class Benchmarks:
    def __init__(self, build, quick, models):
        self.build, self.quick, self.models = build, quick, models
        self.work = build / 'bench'

    def program(self, name):
        path = self.build / 'bin' / name
        if not path.exists():
            raise Failure(f'{path} is missing: build the target bench')
        return str(path)

    def plugins(self, *names):
        return [word for name in names for word in ('--plugin', str(self.build / 'plugins' / f'fusebox.{name}'))]

    def lstm(self):
        seconds = '0.3' if self.quick else '3'
        return [self.program('lstm_bench'), '--seconds', seconds, '64', '128', '256', '512']

    def threads(self):
        return [self.program('threads_bench'), '--rnn', *self.plugins('rnn')[1:], '--seconds', '0.5' if self.quick else '3']

    def open(self):
        rounds = '21' if self.quick else '41'
        return [self.program('open_bench'), *self.plugins('rnn'), '--rounds', rounds, *self.samples(), *self.quantized()]

    def imports(self):
        return [self.program('import_bench'), '--rnn', *self.plugins('rnn')[1:], '--fusebox', self.program('fusebox'),
                '--dir', str(self.work / 'import'), '--rounds', '11' if self.quick else '41']

    def net(self):
        return [self.program('net_bench'), *self.plugins('xnnpack'), '--seconds', '1' if self.quick else '4']

    def files(self):
        found = self.files_of_models()
        found = found[:MOST_QUICK] if self.quick else sorted(found) + self.written()
        return [self.program('net_bench'), *self.plugins('xnnpack', 'vision'), '--seconds', '0.3' if self.quick else '1',
                *map(str, found)]

    def written(self):
        """Nets with the structure of public ones; two of them with 8-bit weights as well."""
        folder = self.work / 'written'
        folder.mkdir(exist_ok=True)
        subprocess.run([self.program('write_nets'), str(folder)], check=True)
        for name in ('letters', 'mobile'):
            subprocess.run([self.program('fusebox'), 'convert', str(folder / f'{name}.tflite'), '-o', str(folder / f'{name}_dynamic.tflite'),
                            '--quantize', 'dynamic'], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return sorted(folder.glob('*.tflite'))

    def kernels(self):
        """All files, one of each content."""
        found = {hashlib.sha256(path.read_bytes()).digest(): path for path in reversed(self.files_of_models(0))}
        chosen = list(found.values())[:MOST_QUICK] if self.quick else sorted(found.values())
        return [self.program('net_bench'), '--kernels', *self.plugins('vision'), '--seconds', '0.05', *map(str, chosen)]

    def placement(self):
        """Files of which XNNPACK takes a node, one of each content, at equal distances by name."""
        found = {hashlib.sha256(path.read_bytes()).digest(): path for path in reversed(self.files_of_models(SMALLEST_PLACED))
                 if path.stat().st_size < LARGEST_PLACED}
        return [self.program('placement_bench'), *self.plugins('xnnpack'), '--seconds', '0.1' if self.quick else '0.6',
                '--files', '4' if self.quick else '40', *map(str, sorted(found.values()))]

    def start(self):
        """A small LSTM, MobileNetV2 and others at equal distances by name, each in processes of its own."""
        plugins = self.work / 'plugins'
        shutil.rmtree(plugins, ignore_errors=True)
        shutil.copytree(self.build / 'plugins', plugins)
        subprocess.run([self.program('fusebox'), 'plugin', 'index', str(plugins)], check=True, stderr=subprocess.DEVNULL)
        found = {hashlib.sha256(path.read_bytes()).digest(): path for path in reversed(self.files_of_models(SMALLEST_PLACED))
                 if path.stat().st_size < LARGEST_PLACED}
        others = sorted(found.values())
        count = 4 if self.quick else STARTED
        chosen = [others[i * len(others) // count] for i in range(count)]
        small = [path for path in self.samples() if path.endswith('fused/keras_lstm.tflite')]
        return [sys.executable, str(report.HERE / 'start.py'), self.program('start_bench'), self.program('fusebox'), str(plugins),
                '5' if self.quick else '21', *small, *map(str, chosen)]

    def cache(self):
        work = ['--dir', str(self.work / 'cache')]
        return [self.program('cache_bench'), *self.plugins('xnnpack'), *work,
                *(['--rounds', '3', '--small'] if self.quick else ['--rounds', '2'])]

    def convert(self):
        work = ['--dir', str(self.work / 'convert')]
        size = ['--layers', '4', '--units', '1024'] if self.quick else []
        return [self.program('convert_bench'), *work, *size, '--rounds', '3' if self.quick else '2']

    def door(self):
        return [self.program('door_bench'), '--seconds', '1' if self.quick else '5']

    def hosted(self):
        """Small and large files, one of each content; the program chooses nets that the delegate runs as a whole."""
        found = {hashlib.sha256(path.read_bytes()).digest(): path for path in reversed(self.files_of_models(0))
                 if path.stat().st_size < LARGEST_PLACED}
        return [self.program('hosted_bench'), *self.plugins('tflite_delegate'), '--seconds', '0.05' if self.quick else '0.3',
                *map(str, sorted(found.values()))]

    def cancel(self):
        return [self.program('cancel_bench'), '--rounds', '50' if self.quick else '300']

    def nn(self):
        folders = [word for name in ('nn', 'xnnpack') for word in (f'--{name}', str(self.build / 'plugins' / f'fusebox.{name}'))]
        sample = str(self.build / 'sample_plugins/com.acme.swiglu_block')
        return [self.program('nn_bench'), *folders, '--swiglu', sample, '--seconds', '0.3' if self.quick else '2']

    def conv_lstm(self):
        folders = [word for name in ('rnn', 'xnnpack') for word in (f'--{name}', str(self.build / 'plugins' / f'fusebox.{name}'))]
        return [self.program('conv_lstm_bench'), *folders, '--dir', str(self.work / 'conv_lstm'),
                '--seconds', '0.3' if self.quick else '2']

    def decoder(self):
        folders = [word for name in ('nn', 'xnnpack') for word in (f'--{name}', str(self.build / 'plugins' / f'fusebox.{name}'))]
        return [self.program('decoder_bench'), *folders, '--dir', str(self.work / 'decoder'),
                *(['--rounds', '1', '--layers', '2'] if self.quick else ['--rounds', '5'])]

    def tool(self):
        """Files through xnnpack, of all sizes."""
        found = self.files_of_models()
        chosen = [found[i * len(found) // TOOL_FILES] for i in range(TOOL_FILES)]
        return [sys.executable, str(report.HERE / 'tool.py'), self.program('fusebox'), self.program('net_bench'),
                '0.1' if self.quick else '0.4', *self.plugins('xnnpack', 'vision'), '--', *map(str, chosen)]

    def python(self):
        """Small models, whose calls take longer than their runs. Debian's Python has NumPy."""
        dense = [path for path in self.samples() if path.endswith('/dense.tflite')]
        return ['env', f'FUSEBOX_PREFIX={self.build}', f'FUSEBOX_PLUGIN_PATH={self.build / "plugins"}',
                f'PYTHONPATH={report.HERE.parents[1] / "python"}', '/usr/bin/python3', str(report.HERE / 'python_calls.py'),
                self.program('fusebox'), *dense]

    def files_of_models(self, smallest=SMALLEST):
        """The .tflite files of more than `smallest` bytes, by size."""
        if not self.models:
            raise Failure('FUSEBOX_MODELS is not set')
        found = sorted((p for p in self.models.rglob('*.tflite') if p.stat().st_size > smallest), key=lambda p: p.stat().st_size)
        if not found:
            raise Failure(f'{self.models}: no .tflite file of more than {smallest} bytes')
        return found

    def samples(self):
        """The .tflite files of sample models, and of real ones where they are: fused, recurrent ones also as loops."""
        folder = self.work / 'models'
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([self.program('write_models'), str(folder), *[w for s in SAMPLES for w in ('--model', s)]],
                       check=True, stdout=subprocess.DEVNULL)
        sources = {name: folder / name for name in SAMPLES}
        if self.models:
            sources |= {name: self.models / path for name, path in REAL.items() if (self.models / path).is_dir()}
        return [self.converted(source, folder / form / f'{name}.tflite', form)
                for name, source in sources.items() for form in (('fused', 'loop') if name in RECURRENT else ('fused',))]

    def quantized(self):
        """The first file of each of these names."""
        if not self.models:
            return []
        found = (sorted(self.models.rglob(f'{name}.tflite')) for name in QUANTIZED)
        return [str(paths[0]) for paths in found if paths]

    def converted(self, source, output, form):
        output.parent.mkdir(exist_ok=True)
        composites = {'fused': 'fuse', 'loop': 'inline'}[form]
        subprocess.run([self.program('fusebox'), 'convert', str(source), '-o', str(output), '--batch', '1',
                        '--composites', composites, *self.plugins('rnn')], check=True, stdout=subprocess.DEVNULL)
        return str(output)


NAMES = ('lstm', 'threads', 'open', 'imports', 'net', 'files', 'kernels', 'cache', 'convert', 'cancel', 'door', 'hosted', 'nn', 'conv_lstm', 'decoder',
         'tool', 'python', 'placement', 'start')


def rows_in(text):
    """The rows of a benchmark's output. One that was ended in the middle of a line leaves part of a row."""
    whole = text[:text.rfind('\n') + 1]
    return [json.loads(line) for line in whole.splitlines() if line.startswith('{')]


def run(name, command, number, deadline):
    """The rows that a benchmark writes. One that fails, or that is ended at the deadline, adds a row with the reason."""
    print(f'{name}, run {number + 1} ...', file=sys.stderr, flush=True)
    left = None if deadline is None else max(0.1, deadline - time.monotonic())
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=left)
    except subprocess.TimeoutExpired as ended:
        rows = [row | {'run': number} for row in rows_in((ended.stdout or b'').decode())]
        return rows + [{'bench': name, 'job': 'the rest', 'runner': 'nobody', 'error': 'no time is left'}]
    rows = [row | {'run': number} for row in rows_in(done.stdout.decode())]
    if done.returncode != 0 and not any('error' in row and row['runner'] == report.OURS for row in rows):
        rows.append({'bench': name, 'job': pathlib.Path(command[0]).name, 'runner': report.OURS, 'run': number,
                     'error': f'exit status {done.returncode}'})
    return rows


def measure(benchmarks, names, rounds, seconds=None):
    """All rows of the benchmarks, `rounds` times each, in turns. After `seconds` no more is started, and what runs is ended."""
    deadline = None if seconds is None else time.monotonic() + seconds
    rows, commands = [], {}
    for name in names:
        try:
            commands[name] = getattr(benchmarks, name)()
        except Failure as why:
            rows.append({'bench': name, 'job': 'all', 'runner': 'nobody', 'error': str(why)})
        except subprocess.CalledProcessError as why:
            rows.append({'bench': name, 'job': 'all', 'runner': report.OURS, 'error': str(why)})
    for number in range(rounds):
        for name, command in commands.items():
            rows += run(name, command, number, deadline)
    return rows


def machine(build):
    """The machine, the state of the sources and the date, in a line."""
    model = next((line.split(':', 1)[1].strip() for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines()
                  if line.startswith('model name')), platform.machine())
    model = model.replace('(R)', '').replace('(TM)', '').replace(' Processor', '')
    system = platform.freedesktop_os_release().get('PRETTY_NAME', platform.system())
    commit = subprocess.run(['git', '-C', str(report.HERE), 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True)
    return (f'{datetime.date.today().isoformat()}, {model}, {os.cpu_count()} CPUs, {system}, preset {build.name}, '
            f'commit {commit.stdout.strip() or "unknown"}, load {os.getloadavg()[0]:.1f} at the start.')


def main(words):
    parser = argparse.ArgumentParser(prog='./dev bench', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('names', nargs='*', metavar='NAME')
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--rounds', type=int)
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--docs', type=pathlib.Path)
    arguments = parser.parse_intermixed_args(words)
    for name in arguments.names:
        if name not in NAMES:
            parser.error(f'no benchmark {name}; there are {", ".join(NAMES)}')
    if arguments.quick and arguments.docs:
        parser.error('--docs: a quick run is too noisy for a page')
    build = arguments.build.resolve()
    models = os.environ.get('FUSEBOX_MODELS')
    on_top = machine(build)
    benchmarks = Benchmarks(build, arguments.quick, pathlib.Path(models) if models else None)
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    (build / 'bench').mkdir(exist_ok=True)
    rows = measure(benchmarks, arguments.names or NAMES, rounds, QUICK_SECONDS if arguments.quick else None)
    for name in ('cache', 'decoder'):
        shutil.rmtree(build / 'bench' / name, ignore_errors=True)  # models of more than 1 GB
    margins = report.read_margins()
    lines = report.lines_of(rows, margins)
    print(on_top)
    status = report.print_report(rows, margins, arguments.all)
    if arguments.json:
        arguments.json.write_text(json.dumps(report.as_json(lines, rows, on_top), indent=1) + '\n')
    if arguments.docs:
        report.write_docs(arguments.docs / 'benchmarks', report.shown(lines), on_top)
        plot.write(arguments.docs)
    return status


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
