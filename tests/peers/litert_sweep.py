#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""litert_sweep.py BUILD PEERS MODELS [--table FILE] [--only TEXT] [--converted] [--not-in-stock]: real files in Fusebox and LiteRT.

Runs every .tflite file below MODELS, and with --converted every SavedModel and Keras file and the models of write_models, as Fusebox
converts them: with fused ops, with composites inlined, and with 8-bit weights. Both engines read the same inputs, which Fusebox
generates. Integers and bools must be equal; floats may differ by 1e-4 of the largest value of the output. Prints a count of each
outcome:

    equal         the outputs are equal within these limits
    different     they are not
    only ours     LiteRT does not load, compile or run the file, or does not write an output; only litert: Fusebox refuses it
    neither       neither runs it
    not converted Fusebox does not convert the model

A file that differs runs again with XNNPACK for all nodes that it supports ("xnnpack"), and with kernels only ("kernels"). The cause
of each difference is counted:

    placement     equal with XNNPACK for all nodes: Fusebox runs some 8-bit nodes with kernels where they are faster
    rounding      equal with kernels: XNNPACK runs a node that LiteRT runs with a kernel, as AVERAGE_POOL_2D of 8 bits
    hybrid        products of f32 values and 8-bit weights, whose rows both quantize at run time, by rules of their own
    known         listed in KNOWN
    unknown       none of these

--table writes a row for each file. --not-in-stock runs the files that stock TensorFlow Lite 2.9 does not run, according to
MODELS/STOCK.tsv. Exits with 1 if a difference, a crash of Fusebox or a file that only LiteRT runs has no known cause, or if no file
is equal. All files take some minutes.
"""
import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile

import engines

FORMS = {'fused': [], 'inline': ['--composites', 'inline'], 'dynamic': ['--quantize', 'dynamic', '--composites', 'inline']}
COLUMNS = ('file', 'outcome', 'cause', 'difference', 'xnnpack', 'kernels', 'Fusebox', 'LiteRT')

# Parts of names of files that differ for a reason of their own.
POOLS = 'AVERAGE_POOL_2D of 8 bits rounds ties away from zero in kernels, to even in XNNPACK; LiteRT runs it with its kernel'
UNRANKED = 'an input of unknown rank, for which `fusebox run` needs a file'
KNOWN = {
    'dbface_keras_256x256_integer_quant': 'HARD_SWISH of 8 bits: LiteRT runs it with its kernel, Fusebox with XNNPACK',
    'model_profiler/config/tflite/image_classification': POOLS,
    'keyword_spotting_on_off_v3': POOLS,
    'simple_scatter_nd_op': 'the generated indices are outside of the result, which Fusebox reports',
    'saved_model_v2_mini': UNRANKED,
    'tests/models/regression/saved_model': UNRANKED,
    'saved_model_using_python/model': UNRANKED,
    'single_rsqrt_default_a8w8_recipe_quantized': 'Fusebox returns the nearest value, LiteRT computes in fixed point',
    'static_w8_a16_quantized': 'LiteRT returns zeros for BATCH_MATMUL of i16 by i8 with a scale per channel',
}


class Sweep:
    def __init__(self, build, peers, work):
        self.build, self.work = build, pathlib.Path(work)
        self.ours = engines.Fusebox(build)
        self.others = {'xnnpack': engines.Fusebox(build, 'xnnpack:{"placement":"all"}'), 'kernels': engines.Fusebox(build, 'none')}
        self.litert = engines.litert(peers)
        self.rows = []

    def compare(self, name, file):
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            ours = self.ours.run(file, f'{folder}/ours')
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
                if row['outcome'] == 'only litert' or ours.status.startswith('crash'):
                    row['cause'] = self.cause(row, file)
        self.rows.append(row)
        print(*(row[column] for column in COLUMNS[:6]), sep='\t', file=sys.stderr, flush=True)

    def cause(self, row, file):
        if row['xnnpack'] == 'equal':
            return 'placement'
        if row['kernels'] == 'equal':
            return 'rounding'
        if any(known in row['file'] for known in KNOWN):
            return 'known'
        return 'hybrid' if self.ours.is_hybrid(file) else 'unknown'

    def convert(self, name, source):
        for form, options in FORMS.items():
            out = self.work / 'converted.tflite'
            out.unlink(missing_ok=True)
            status, errors = self.ours.call('convert', source, '-o', out, '--batch', 1, '--quiet', *options, seconds=300)
            if status == 0:
                self.compare(f'{name} ({form})', out)
            else:
                row = dict.fromkeys(COLUMNS, '') | {'file': f'{name} ({form})', 'outcome': 'not converted'}
                self.rows.append(row | {'Fusebox': ' '.join(errors.split())[:300]})


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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        sweep = Sweep(options.build, options.peers, work)
        for file in not_in_stock(options.models) if options.not_in_stock else sorted(options.models.rglob('*')):
            if file.suffix in ('.tflite', '.lite') and options.only in str(file):
                sweep.compare(str(file.relative_to(options.models)), file)
        if options.converted:
            samples = pathlib.Path(work) / 'samples'
            subprocess.run([options.build / 'bin' / 'write_models', samples], check=True, stdout=subprocess.DEVNULL)
            for folder in (options.models, samples):
                for source in sources(folder):
                    if options.only in str(source):
                        sweep.convert(str(source.relative_to(folder)), source)
        sweep.litert.close()
    if options.table:
        lines = [COLUMNS] + [[row[column] for column in COLUMNS] for row in sweep.rows]
        pathlib.Path(options.table).write_text(''.join('\t'.join(line) + '\n' for line in lines))
    for column in ('outcome', 'cause'):
        for value, count in collections.Counter(row[column] for row in sweep.rows if row[column]).most_common():
            print(f'{column} {value}: {count}')
    unknown = any(row['cause'] == 'unknown' for row in sweep.rows)
    return 1 if unknown or all(row['outcome'] != 'equal' for row in sweep.rows) else 0


if __name__ == '__main__':
    sys.exit(main())
