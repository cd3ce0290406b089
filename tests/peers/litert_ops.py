#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""litert_ops.py BUILD PEERS PAGE [--write] [--only TEXT]: each op in Fusebox, stock TensorFlow Lite 2.9 and LiteRT.

A file for each case of op_cases.py is converted by Fusebox and runs in the three engines on the same inputs. Exits with 1 if LiteRT's
results differ from Fusebox's, or if the table in PAGE, between the comments "ops: begin" and "ops: end", is not the outcome;
--write writes the table.
"""
import argparse
import pathlib
import sys
import tempfile

import engines
import op_cases
import op_files

BEGIN, END = '<!-- ops: begin -->\n', '<!-- ops: end -->\n'

# Parts of LiteRT's messages, and what the table has for them.
REASONS = {'Variable tensors not yet supported': 'rejected: state in variable tensors',
           'tensor->allocation_type == kTfLiteArenaRw': 'no result: its size is computed',
           'tensor_at_index->allocation_type': 'no result: it depends on shapes only',
           'got BOOL': 'rejected'}
# Cases whose results are known to differ from LiteRT's.
KNOWN = {'BATCH_MATMUL (16x8, scales per channel)': 'zeros'}
# Rows of the table, in order.
ORDER = [('equal', 'equal'), ('rejected', 'equal'), ('other results', 'equal'), ('rejected', 'rejected'),
         *(('equal', reason) for reason in REASONS.values())]


class Ops:
    def __init__(self, build, peers, work):
        self.schema, self.work = op_files.Schema(), pathlib.Path(work)
        self.ours, self.stock, self.litert = engines.Fusebox(build), engines.stock(peers), engines.litert(peers)

    def close(self):
        self.stock.close()
        self.litert.close()

    def run(self, case):
        """The outcomes of 2.9 and LiteRT, and details of a failure of Fusebox or a difference from LiteRT, or ''."""
        folder = self.work / case.name.replace(' ', '_')
        file = op_files.write(case, self.schema, folder)
        if not case.raw:
            converted = folder / 'converted.tflite'
            status, errors = self.ours.call('convert', file, '-o', converted, '--composites', 'keep', '--quiet')
            if status != 0:
                return '', '', f'is not converted: {errors}'
            file = converted
        if case.op not in self.ours.ops(file):
            return '', '', f'is not in the converted file, which has {", ".join(self.ours.ops(file))}'
        ours = self.ours.run(file, folder / 'ours', folder)
        if not ours.ok:
            return '', '', f'does not run: {ours.why}'
        stock = self.stock.run(file, folder / 'stock', ours.inputs)
        litert = self.litert.run(file, folder / 'litert', ours.inputs)
        named = next((text for part, text in REASONS.items() if part in litert.why), f'{litert.status}: {litert.why}')
        differs = engines.difference(ours, litert) if litert.ok else ''
        if differs and case.name in KNOWN:
            named, differs = KNOWN[case.name], ''
        elif differs:
            named = 'differs'
        elif litert.ok:
            named = 'equal'
        return ('rejected' if not stock.ok else 'other results' if engines.difference(ours, stock) else 'equal',
                named, differs)


def table(rows):
    """Markdown. An op whose cases have one outcome is named once."""
    outcomes = {}
    for name, outcome in rows.items():
        outcomes.setdefault(name.split()[0], set()).add(outcome)
    lines = ['| TFLite 2.9 | LiteRT 2.5 | ops |\n', '|---|---|---|\n']
    for pair in ORDER + sorted(set(rows.values()) - set(ORDER)):
        names = [name if len(outcomes[name.split()[0]]) > 1 else name.split()[0] for name, outcome in rows.items() if outcome == pair]
        if names:
            lines.append(f'| {pair[0]} | {pair[1]} | {", ".join(dict.fromkeys(names))} |\n')
    return ''.join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('peers', type=pathlib.Path)
    parser.add_argument('page', type=pathlib.Path)
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--only', default='')
    options = parser.parse_args()
    rows, failed = {}, 0
    with tempfile.TemporaryDirectory() as work:
        ops = Ops(options.build, options.peers, work)
        for case in op_cases.all_cases():
            if options.only not in case.name:
                continue
            stock, litert, details = ops.run(case)
            if details:
                print(f'{case.name}: {details}')
                failed += 1
            rows[case.name] = (stock, litert)
        ops.close()
    print(f'{len(rows)} files, {sum(row[1] == "equal" for row in rows.values())} equal in LiteRT, '
          f'{sum(row == ("rejected", "equal") for row in rows.values())} of them not in 2.9, {failed} failed')
    if options.only:
        print(table(rows))
        return 1 if failed else 0
    text = options.page.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    made = table(dict(sorted(rows.items())))
    if options.write:
        options.page.write_text(text[:begin] + made + text[end:])
    elif text[begin:end] != made:
        print(f'{options.page}: the table of ops is another one; litert_ops.py --write writes it:\n{made}')
        failed += 1
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
