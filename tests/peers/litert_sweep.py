#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""litert_sweep.py BUILD PEERS MODELS [--table FILE.tsv] [--only TEXT] [--converted]: real files in Fusebox and in today's LiteRT.

Runs every .tflite file below MODELS, and with --converted every SavedModel and Keras file and the models of write_models, as Fusebox
converts them: with fused ops, with composites inlined, and with 8-bit weights. Both engines read the same inputs, which Fusebox
generates. Integers and bools must be equal; floats may differ by 1e-4 of the largest value of the output. A file that differs runs
again without delegates ("kernels"). Prints a count of each outcome, and the files that differ or that one engine runs:

    equal         the outputs are equal within these limits
    different     they are not
    only ours     LiteRT does not load, compile or run the file; only litert: Fusebox refuses it
    neither       neither runs it
    not converted Fusebox does not convert the model

--table writes a row for each file. Takes some minutes. The exit status is 0: what is different is for a reader to judge.
"""
import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile

import engines

FORMS = {'fused': [], 'inline': ['--composites', 'inline'], 'dynamic': ['--quantize', 'dynamic', '--composites', 'inline']}
COLUMNS = ('file', 'outcome', 'difference', 'kernels', 'Fusebox', 'LiteRT')


class Sweep:
    def __init__(self, build, peers, work):
        self.build, self.work = build, pathlib.Path(work)
        self.ours = engines.Fusebox(build)
        self.kernels = engines.Fusebox(build, 'none')
        self.litert = engines.litert(peers)
        self.rows = []

    def compare(self, name, file):
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            ours = self.ours.run(file, f'{folder}/ours')
            theirs = self.litert.run(file, f'{folder}/theirs', ours.inputs if ours.ok else None)
            row = dict.fromkeys(COLUMNS, '') | {'file': name}
            row['Fusebox'], row['LiteRT'] = (' '.join((each.status, each.why[:300])).strip() for each in (ours, theirs))
            if ours.ok and theirs.ok:
                row['difference'] = engines.difference(ours.outputs, theirs.outputs)
                row['outcome'] = 'different' if row['difference'] else 'equal'
                if row['difference']:
                    kernels = self.kernels.run(file, f'{folder}/kernels', f'{folder}/ours')
                    row['kernels'] = engines.difference(kernels.outputs, theirs.outputs) or 'equal'
            else:
                row['outcome'] = 'only ours' if ours.ok else 'only litert' if theirs.ok else 'neither'
        self.rows.append(row)
        print(*(row[column] for column in COLUMNS[:4]), sep='\t', file=sys.stderr, flush=True)

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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('peers', type=pathlib.Path)
    parser.add_argument('models', type=pathlib.Path)
    parser.add_argument('--table')
    parser.add_argument('--only', default='')
    parser.add_argument('--converted', action='store_true')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        sweep = Sweep(options.build, options.peers, work)
        for file in sorted(options.models.rglob('*')):
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
    for outcome, count in collections.Counter(row['outcome'] for row in sweep.rows).most_common():
        print(f'{outcome}: {count}')


if __name__ == '__main__':
    main()
