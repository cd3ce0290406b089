#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""litert_sweep.py BUILD PEERS MODELS [--only TEXT] [--table FILE] [--converted|--rewritten|--not-in-stock|--samples]: Fusebox beside
LiteRT.

Runs every .tflite file below MODELS, and with --converted every SavedModel and Keras file and the models of write_models, as Fusebox
converts them: with fused ops, and with composites inlined, in f32, with 8-bit weights and in 8-bit integers. LiteRT rejects most
fused ops, so these are also compared with the inlined form in LiteRT. Both engines read the same inputs, which Fusebox generates.
Integers and bools must be equal; floats may differ by 1e-4 of the largest value of the output. Prints a count of each outcome:

    equal         the outputs are equal within these limits
    different     they are not
    only ours     LiteRT does not load, compile or run the file, or does not write an output; only litert: Fusebox refuses it
    neither       neither runs it
    not converted Fusebox does not convert the model

A file that differs runs again with XNNPACK for all nodes that it supports ("xnnpack"), and with kernels only ("kernels"). The cause
of each difference is counted:

    placement     equal with XNNPACK for all nodes: Fusebox runs some 8-bit nodes with kernels where they are faster
    rounding      equal with kernels: XNNPACK rounds a node otherwise, such as AVERAGE_POOL_2D of 8 bits
    hybrid        products of f32 values and 8-bit weights, whose rows both quantize at run time, by rules of their own; below HYBRID
    known         listed in KNOWN
    unknown       none of these

So is the cause of each failure, by the messages in FAILURES:

    custom op     an op without a kernel, or ops of TensorFlow
    state         variable tensors, which LiteRT rejects
    no result     LiteRT does not write an output: its size is computed, it is an input, or it is listed twice
    type          an input has a type that LiteRT's API does not accept
    check         LiteRT rejects the file, or crashes
    invalid       the file is not valid
    no model      weights without layers, or the class of a model without its code
    translation   an op of TensorFlow or of its text library that Fusebox does not translate

--table writes a row for each file. --rewritten compares what `fusebox convert` writes for each .tflite file instead of the file.
--not-in-stock runs the files that stock TensorFlow Lite 2.9 does not run, according to MODELS/STOCK.tsv; --samples the models of
write_models only. Exits with 1 if an outcome other than equal has no known cause, or if no file is equal. All files take some
minutes.
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import engines
import numpy as np

INLINE = ['--composites', 'inline']
FORMS = {'fused': [], 'inline': INLINE, 'dynamic': [*INLINE, '--quantize', 'dynamic'], 'int8': [*INLINE, '--quantize', 'int8']}
COLUMNS = ('file', 'outcome', 'cause', 'difference', 'xnnpack', 'kernels', 'Fusebox', 'LiteRT')

HYBRID = 0.1  # of the largest value
# Parts of names of files that differ for a reason of their own.
POOLS = 'AVERAGE_POOL_2D of 8 bits rounds ties away from zero in kernels and LiteRT, to even in XNNPACK of Fusebox'
SCALES = 'LiteRT returns zeros for BATCH_MATMUL of i16 by i8 with a scale per channel'
ROOT = 'RSQRT: Fusebox returns the nearest value, LiteRT computes in fixed point'
KNOWN = {
    'dbface_keras_256x256_integer_quant': 'HARD_SWISH of 8 bits: XNNPACK of Fusebox returns the nearest step, kernels and LiteRT another',
    'model_profiler/config/tflite/image_classification': POOLS,
    'keyword_spotting_on_off_v3': POOLS,
    'single_rsqrt_default_a8w8_recipe_quantized': ROOT,
    'single_rsqrt_default_a16w8_recipe_quantized': ROOT,
    'static_w8_a16_quantized': SCALES,
}

# Causes of other outcomes: the engine that fails, a part of its message, the cause. The first that fits counts.
FAILURES = (
    ('Fusebox', 'no kernel for', 'custom op'),
    ('Fusebox', 'its body is a placeholder', 'custom op'),
    ('Fusebox', 'there is no translation', 'translation'),
    ('Fusebox', 'before anything defines it', 'invalid'),
    ('Fusebox', 'is quantized along dimension', 'invalid'),
    ('Fusebox', 'is outside of rank', 'invalid'),
    ('Fusebox', 'missing, although', 'invalid'),
    ('Fusebox', 'refers to', 'invalid'),
    ('Fusebox', 'results for strings of rank', 'translation'),
    ('Fusebox', 'not the two sides of one condition', 'translation'),
    ('Fusebox', 'weights only, no model', 'no model'),
    ('Fusebox', 'custom model class', 'no model'),
    ('LiteRT', 'Variable tensors', 'state'),
    ('LiteRT', 'unresolved custom op', 'custom op'),
    ('LiteRT', 'Select TensorFlow op', 'custom op'),
    ('LiteRT', 'does not write', 'no result'),
    ('LiteRT', 'allocation_type', 'no result'),
    ('LiteRT', 'is of type', 'type'),
    ('LiteRT', 'Element type', 'type'),
    ('LiteRT', 'Signature has incorrect number', 'check'),
    ('LiteRT', 'litert_tensor_buffer.h', 'check'),
    ('LiteRT', 'crash', 'check'),
)

TRANSPOSED = [1, 3, 12, 64], [1, 3, 22, 32], [1, 3, 42, 32], [1, 4, 82, 16], [1, 4, 162, 8]
SCALAR = np.float32(1.5)
# Inputs by number, for parts of names: sizes, indices, divisors and positive values that fit the file; scalars for unknown ranks.
INPUTS = {
    'simple_floor_mod': {0: np.int32([7, -7, 8, -8, 0]), 1: np.int32([3, 3, -3, -3, 5])},
    'simple_scatter_nd_op': {0: np.int32([[0, 1, 1, 2], [0, 5, 3, 100]])},
    'models/single_slice': {0: np.int32([0, 1, 0]), 1: np.int32([2, 2, 3]), 2: np.arange(60, dtype=np.float32).reshape(3, 4, 5)},
    'single_rsqrt_default_a16w8': {0: np.arange(1, 32768, 32, dtype=np.int16).reshape(1, 32, 32)},
    **{f'transpose_conv{i}.tflite': {0: np.int32(dims)} for i, dims in enumerate(TRANSPOSED)},
    'testdata/saved_model_v2_mini': {0: SCALAR},
    'tests/models/regression/saved_model': {0: SCALAR},
    'saved_model_using_python/model': {0: SCALAR, 1: SCALAR},
}


class Sweep:
    def __init__(self, build, peers, work):
        self.build, self.work = build, pathlib.Path(work)
        self.ours = engines.Fusebox(build)
        self.others = {'xnnpack': engines.Fusebox(build, 'xnnpack:{"placement":"all"}'), 'kernels': engines.Fusebox(build, 'none')}
        self.litert = engines.litert(peers)
        self.rows = []

    def compare(self, name, file):
        """Adds a row, and returns the outcomes of Fusebox and LiteRT."""
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            ours = self.ours.run(file, f'{folder}/ours', values=self.values(name, file, folder))
            theirs = self.litert.run(file, f'{folder}/theirs', ours.inputs if ours.ok else None)
            if theirs.ok and (names := self.ours.unwritten(file)):
                theirs = engines.Outcome('run', f'does not write {", ".join(names)}: an input, or listed twice')
            row = dict.fromkeys(COLUMNS, '') | {'file': name}
            row['Fusebox'], row['LiteRT'] = (' '.join((each.status, each.why[:300])).strip() for each in (ours, theirs))
            if ours.ok and theirs.ok:
                row['difference'] = engines.difference(ours, theirs)
                row['outcome'] = 'different' if row['difference'] else 'equal'
                if row['difference']:
                    for column, engine in self.others.items():
                        other = engine.run(file, f'{folder}/{column}', f'{folder}/ours')
                        row[column] = engines.difference(other, theirs) or 'equal'
                    row['cause'] = self.cause(row, file)
            else:
                row['outcome'] = 'only ours' if ours.ok else 'only litert' if theirs.ok else 'neither'
                row['cause'] = self.cause_of_failure(row)
        self.add(row)
        return ours, theirs

    def values(self, name, file, folder):
        """Writes the INPUTS of a file; returns the paths by name."""
        paths = {}
        for i, array in next((INPUTS[part] for part in INPUTS if part in name), {}).items():
            paths[self.ours.input_names(file)[i]] = f'{folder}/value{i}.npy'
            np.save(f'{folder}/value{i}.npy', array)
        return paths

    def add(self, row):
        self.rows.append(row)
        print(*(row[column] for column in COLUMNS[:6]), sep='\t', file=sys.stderr, flush=True)

    def compare_forms(self, name, ours, theirs):
        """Adds a row for fused ops in Fusebox beside the inlined form in LiteRT, which rejects most fused ops."""
        if ours.ok and theirs.ok:
            difference = engines.difference(ours, theirs)
            row = {'file': f'{name} (fused beside inlined)', 'difference': difference, 'Fusebox': 'ok', 'LiteRT': 'ok',
                   'outcome': 'different' if difference else 'equal', 'cause': 'unknown' if difference else ''}
            self.add(dict.fromkeys(COLUMNS, '') | row)

    def cause(self, row, file):
        if row['xnnpack'] == 'equal':
            return 'placement'
        if row['kernels'] == 'equal':
            return 'rounding'
        if any(known in row['file'] for known in KNOWN):
            return 'known'
        share = re.search(r': (\S+) of the largest value', row['difference'])
        return 'hybrid' if share and float(share[1]) < HYBRID and self.ours.is_hybrid(file) else 'unknown'

    def cause_of_failure(self, row):
        failed = 'LiteRT' if row['Fusebox'] == 'ok' else 'Fusebox'
        return next((cause for engine, part, cause in FAILURES if engine == failed and part in row[failed]), 'unknown')

    def convert(self, name, source):
        outcomes = {}
        for form, options in FORMS.items():
            out, samples = self.work / f'{form}.tflite', self.work / 'samples'
            if form == 'int8':
                if not self.calibrate(samples):
                    continue
                options = [*options, '--calibration', samples]
            if outcome := self.compare_converted(f'{name} ({form})', source, out, ['--batch', 1, *options]):
                outcomes[form] = outcome
        if 'fused' in outcomes and 'inline' in outcomes:
            self.compare_forms(name, outcomes['fused'][0], outcomes['inline'][1])

    def compare_converted(self, name, source, out, options):
        """As compare, of what Fusebox converts the source to; None: it does not."""
        out.unlink(missing_ok=True)
        status, errors = self.ours.call('convert', source, '-o', out, '--quiet', *options, seconds=300)
        if status == 0:
            return self.compare(name, out)
        row = dict.fromkeys(COLUMNS, '') | {'file': name, 'outcome': 'not converted', 'Fusebox': ' '.join(errors.split())[:300]}
        self.add(row | {'cause': self.cause_of_failure(row)})
        return None

    def calibrate(self, samples):
        """Leaves the inputs of a run of the inlined model in a folder; False: it does not run."""
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            ran = self.ours.run(self.work / 'inline.tflite', folder)
            shutil.rmtree(samples, ignore_errors=True)
            samples.mkdir()
            for file in ran.inputs.values():
                shutil.copy(file, samples)
        return ran.ok


def files(models):
    return sorted(file for file in models.rglob('*') if file.suffix in ('.tflite', '.lite'))


def sources(models):
    """The SavedModels and Keras files below a folder."""
    found = [file.parent for file in models.rglob('saved_model.pb')]
    return sorted(found + [file for file in models.rglob('*') if file.suffix in ('.h5', '.hdf5', '.keras')])


def not_in_stock(models):
    rows = [line.split('\t') for line in (models / 'STOCK.tsv').read_text().splitlines()[1:]]
    return [models / 'tflite' / row[0] for row in rows if not row[1].startswith('ok')]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('peers', type=pathlib.Path)
    parser.add_argument('models', type=pathlib.Path)
    parser.add_argument('--table')
    parser.add_argument('--only', default='')
    parser.add_argument('--converted', action='store_true')
    parser.add_argument('--not-in-stock', action='store_true')
    parser.add_argument('--samples', action='store_true')
    parser.add_argument('--rewritten', action='store_true')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        sweep = Sweep(options.build, options.peers, work)
        if not options.samples:
            for file in (not_in_stock if options.not_in_stock else files)(options.models):
                if options.only in str(file) and options.rewritten:
                    sweep.compare_converted(str(file.relative_to(options.models)), file, pathlib.Path(work) / 'rewritten.tflite', [])
                elif options.only in str(file):
                    sweep.compare(str(file.relative_to(options.models)), file)
        folders = [options.models] if options.converted else []
        if options.converted or options.samples:
            folders.append(pathlib.Path(work) / 'models')
            subprocess.run([options.build / 'bin' / 'write_models', folders[-1]], check=True, stdout=subprocess.DEVNULL)
        for folder in folders:
            for source in sources(folder):
                if options.only in str(source):
                    sweep.convert(str(source.relative_to(folder)), source)
        sweep.litert.close()
    if options.table:
        lines = [COLUMNS] + [[row[column] for column in COLUMNS] for row in sweep.rows]
        pathlib.Path(options.table).write_text(''.join('\t'.join(line) + '\n' for line in lines))
    for value, count in collections.Counter(row['outcome'] for row in sweep.rows).most_common():
        print(f'{value}: {count}')
        causes = collections.Counter(row['cause'] for row in sweep.rows if row['outcome'] == value and row['cause'])
        for cause, files_of_cause in causes.most_common():
            print(f'    {cause}: {files_of_cause}')
    unknown = any(row['cause'] == 'unknown' for row in sweep.rows)
    return 1 if unknown or all(row['outcome'] != 'equal' for row in sweep.rows) else 0


if __name__ == '__main__':
    sys.exit(main())
