#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cost_constants.py COST_BENCH XNNPACK [--seconds S] [--keep FILE] | --from FILE: the tables of fusebox.cost/1 for this machine.

COST_BENCH times nodes of many shapes on kernels and on XNNPACK. For each op and side, the constants are those of the sum of amounts
of work (plugins/common/cost.h) with the least relative errors. Prints the rows of plugins/cpu and plugins/xnnpack, the border, and
the median and largest error of each row as a comment.
"""
import argparse
import collections
import json
import math
import operator
import pathlib
import statistics
import subprocess
import sys

ROUNDS, STEPS = 4, 100
MOST_CALL = 100  # ns of a node without work: the code of an op that a net repeats is warm, but measured cold
MOST_TAPS = 25  # XNNPACK's larger depthwise windows have a constant of their own
SIDES = ('kernels', 'xnnpack')
COLUMNS = ('1', '8', '16', '32')
TYPES = {'FLOAT32': 'FBX_F32', 'f32': 'FBX_F32', 'INT8': 'FBX_I8', 'i8': 'FBX_I8'}


def estimate(constants, row):
    return sum(map(operator.mul, constants, row))


def fit(amounts, times):
    """Non-negative constants, by coordinate descent. Errors count as parts of the time and of the estimate alike."""
    count = len(amounts[0])
    constants = [0.0] * count
    weights = [1 / time for time in times]
    for _ in range(ROUNDS):
        rows = [[a * w for a in row] for row, w in zip(amounts, weights)]
        left = [t * w - sum(map(operator.mul, constants, row)) for t, w, row in zip(times, weights, rows)]
        squares = [sum(row[k] ** 2 for row in rows) for k in range(count)]
        for k in [k for k in range(count) if squares[k] > 0] * STEPS:
            step = max(sum(row[k] * rest for row, rest in zip(rows, left)) / squares[k], -constants[k])
            constants[k] += step
            left = [rest - step * row[k] for row, rest in zip(rows, left)]
        weights = [1 / math.sqrt(t * max(1.0, estimate(constants, row))) for t, row in zip(times, amounts)]
    return constants, [abs(math.log(max(1.0, estimate(constants, row)) / t)) for t, row in zip(times, amounts)]


def borders(cases):
    """What a session and a partition cost besides their nodes."""
    small, chain = (next(c for c in cases if c['op'] == 'TANH' and c['in'] == [1, 64] and c['repeat'] == n) for n in (1, 17))
    alone = {side: small[side] - (chain[side] - small[side]) / 16 for side in SIDES}
    return alone['kernels'], max(0.0, alone['xnnpack'] - alone['kernels'])


def rows_of(cases, side, outside):
    """The best row of each op and types."""
    groups = collections.defaultdict(list)
    for case in cases:
        taps = case['weights'][1] * case['weights'][2] if case['op'] == 'DEPTHWISE_CONV_2D' else 1
        if side in case and case['repeat'] == 1 and (side == 'kernels' or taps <= MOST_TAPS):
            groups[case['op'], case['input'], case['filter']].append(case)
    for (op, of_input, of_filter), group in groups.items():
        times = [max(50.0, case[side] - outside) for case in group]
        best = None
        for columns in COLUMNS:
            if columns != '1' and group[0]['filter'] == 'none':
                continue
            constants, errors = fit([[1.0, *case['work'][columns]] for case in group], times)
            score = sum(e * e for e in errors)
            if best is None or score < 0.97 * best[0]:
                best = score, columns, constants, errors
        yield op, of_input, of_filter, group, times, best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('programs', nargs='*', type=pathlib.Path)
    parser.add_argument('--seconds', default='0.02')
    parser.add_argument('--keep', type=pathlib.Path)
    parser.add_argument('--from', dest='source', type=pathlib.Path)
    given = parser.parse_args()
    text = given.source.read_text() if given.source else subprocess.run(
        [*map(str, given.programs), given.seconds], check=True, capture_output=True, text=True).stdout
    if given.keep:
        given.keep.write_text(text)
    cases = [json.loads(line) for line in text.splitlines()]
    session, border = borders(cases)
    print(f'// A session without nodes: {session:.0f} ns. Border of a partition: {border / 2:.0f} ns, twice.')
    for side in SIDES:
        print(f'// {side}')
        for op, of_input, of_filter, group, times, (_, columns, constants, errors) in rows_of(
                cases, side, session + (border if side == 'xnnpack' else 0)):
            constants[0] = min(constants[0], MOST_CALL)
            kind = 'FBX_DTYPE_NONE' if of_filter == 'none' else TYPES.get(of_filter, of_filter)
            numbers = ', '.join('0' if c < 1e-4 else f'{c:.3g}' for c in constants)
            print(f'    {{"{op}", {TYPES.get(of_input, of_input)}, {kind}, {columns}, {numbers}}},'
                  f'  // {len(group)}: {100 * statistics.median(errors):.0f} %, {100 * max(errors):.0f} %')


if __name__ == '__main__':
    sys.exit(main())
