#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report.py ROWS...: makes a table of the rows that benchmarks wrote (row.h).

Each line of ROWS is a JSON object with bench, job, metric, unit, runner, round and value, and optionally `run` (the
number of the process) and `exact`. A row of the table compares "ours" with one peer: the medians over all rounds, their
ratio, a 95 % confidence interval of it, and the margin of margins.tsv. Exit status 1: a ratio is over its margin, and so
is its whole interval; or a benchmark failed.
"""
import collections
import dataclasses
import fnmatch
import json
import pathlib
import random
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
OURS, NO_PEER = 'ours', '-'
RESAMPLES = 1000
MOST_ROUNDS = 40  # of one process; more are joined
FEW_ROUNDS = 6    # with fewer, the interval is the range of the ratios


@dataclasses.dataclass
class Margin:
    bench: str
    job: str
    metric: str
    peer: str
    limit: float | None
    source: str

    def matches(self, bench, job, metric, peer):
        pairs = ((bench, self.bench), (job, self.job), (metric, self.metric), (peer, self.peer))
        return all(fnmatch.fnmatchcase(text, pattern) for text, pattern in pairs)


@dataclasses.dataclass
class Line:
    """A line of the table. Without a peer, `ratio` is the value itself."""
    bench: str
    job: str
    metric: str
    unit: str
    peer: str
    ours: float
    theirs: float | None
    ratio: float
    low: float | None   # None: too few rounds for an interval
    high: float | None
    rounds: int
    margin: float | None = None
    source: str = ''

    @property
    def verdict(self):
        if self.margin is None:
            return ''
        if self.ratio <= self.margin:
            return 'ok'
        return 'over' if self.low is not None and self.low > self.margin else 'over?'


def read_margins(path=HERE / 'margins.tsv'):
    margins = []
    for number, text in enumerate(path.read_text().splitlines(), 1):
        if not text or text.startswith('#'):
            continue
        fields = text.split('\t')
        if len(fields) != 6:
            raise ValueError(f'{path}:{number}: {len(fields)} fields, expected 6 between tabs')
        limit = None if fields[4] == '-' else float(fields[4])
        margins.append(Margin(*fields[:4], limit, fields[5]))
    return margins


def find_margin(margins, bench, job, metric, peer):
    return next((m for m in margins if m.matches(bench, job, metric, peer)), None)


def condense(rounds, most=MOST_ROUNDS):
    """At most `most` rounds: neighbors are joined to their medians."""
    if len(rounds) <= most:
        return rounds
    joined = []
    for i in range(most):
        part = rounds[i * len(rounds) // most:(i + 1) * len(rounds) // most]
        joined.append(tuple(statistics.median(side) for side in zip(*part)))
    return joined


def ratio_of_medians(pairs):
    return statistics.median(p[0] for p in pairs) / statistics.median(p[1] for p in pairs)


def interval(runs, seed=1):
    """A 95 % interval of the ratio of medians. `runs`: for each process its rounds, as pairs (ours, theirs).

    Processes are drawn again with replacement, and the rounds of each; with few rounds, the range of the paired ratios.
    """
    pairs = [pair for rounds in runs for pair in rounds]
    if len(pairs) < 3:
        return None, None
    if len(pairs) < FEW_ROUNDS:
        ratios = [a / b for a, b in pairs]
        return min(ratios), max(ratios)
    draw = random.Random(seed)
    ratios = []
    for _ in range(RESAMPLES):
        drawn = []
        for rounds in draw.choices(runs, k=len(runs)) if len(runs) > 1 else runs:
            drawn += draw.choices(rounds, k=len(rounds))
        ratios.append(ratio_of_medians(drawn))
    ratios.sort()
    return ratios[RESAMPLES * 25 // 1000], ratios[RESAMPLES * 975 // 1000 - 1]


def compare(key, unit, exact, ours, theirs):
    """A Line from {(run, round): value} of both; `theirs` is None where there is no peer."""
    shared = sorted(ours if theirs is None else ours.keys() & theirs.keys())
    by_run = collections.defaultdict(list)
    for at in shared:
        by_run[at[0]].append((ours[at], 1.0 if theirs is None else theirs[at]))
    runs = [condense(rounds) for rounds in by_run.values()]
    pairs = [pair for rounds in runs for pair in rounds]
    if not pairs or statistics.median(p[1] for p in pairs) == 0:
        return None
    ratio = ratio_of_medians(pairs)
    low, high = (ratio, ratio) if exact else interval(runs)
    bench, job, metric, peer = key
    return Line(bench, job, metric, unit, peer, statistics.median(p[0] for p in pairs),
                None if theirs is None else statistics.median(p[1] for p in pairs), ratio, low, high, len(pairs))


def lines_of(rows, margins):
    """All comparisons of the rows, in the order in which they were measured, with their margins."""
    values = collections.defaultdict(dict)  # (bench, job, metric) -> runner -> {(run, round): value}
    about = {}
    for row in rows:
        if 'error' in row:
            continue
        key = (row['bench'], row['job'], row['metric'])
        about[key] = (row['unit'], row.get('exact', False))
        values[key].setdefault(row['runner'], {})[(row.get('run', 0), row['round'])] = row['value']
    lines = []
    for key, by_who in values.items():
        ours = by_who.get(OURS)
        if not ours:
            continue
        for peer in [NO_PEER] + [who for who in by_who if who != OURS]:
            line = compare((*key, peer), *about[key], ours, by_who.get(peer))
            if line is None:
                continue
            margin = find_margin(margins, *key, peer)
            if margin:
                line.margin, line.source = margin.limit, margin.source
            lines.append((line, margin is not None))
    return lines


def shown(lines):
    return [line for line, is_listed in lines if is_listed]


def digits(value):
    """Three significant digits, without an exponent."""
    if value is None:
        return '-'
    if value == 0:
        return '0'
    magnitude = abs(value)
    for limit, places in ((100, 0), (10, 1), (1, 2), (0.1, 3), (0.01, 4), (0.001, 5)):
        if magnitude >= limit:
            return f'{value:.{places}f}'
    return f'{value:.2g}'


def measure(value, unit):
    return '-' if value is None else f'{digits(value)} {unit}'


def columns(line):
    has_peer = line.peer != NO_PEER
    low_high = f'{digits(line.low)} to {digits(line.high)}' if line.low is not None else '-'
    return [line.job, line.metric, measure(line.ours, line.unit), line.peer, measure(line.theirs, line.unit),
            digits(line.ratio) if has_peer else '-', low_high, digits(line.margin), line.verdict or '-']


HEAD = ['job', 'metric', 'ours', 'peer', 'peer measured', 'ours / peer', '95 % interval', 'margin', 'result']


def plain_table(lines):
    rows = [['bench'] + HEAD] + [[line.bench] + columns(line) for line in lines]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return '\n'.join('  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def markdown_table(lines):
    rows = [HEAD, ['---'] * len(HEAD)] + [columns(line) for line in lines]
    return '\n'.join('| ' + ' | '.join(row) + ' |' for row in rows)


def summary(lines):
    """Returns, for the many files of one benchmark, the median and the largest ratio by peer and number of threads."""
    groups = collections.defaultdict(list)
    for line in lines:
        if line.bench == 'files' and line.peer != NO_PEER:
            groups[line.peer, line.job.rsplit(', ', 1)[-1]].append(line.ratio)
    return [f'{len(ratios)} files, {threads}, {peer}: median {digits(statistics.median(ratios))}, largest {digits(max(ratios))}'
            for (peer, threads), ratios in groups.items()]


def errors_of(rows):
    """Texts of what did not run, each once. Those of ours are failures."""
    seen = dict.fromkeys((r['bench'], r['job'], r['runner'], r['error']) for r in rows if 'error' in r)
    return [(runner == OURS, f'{bench}: {job}: {runner}: {why}') for bench, job, runner, why in seen]


def write_docs(folder, lines, machine):
    """Writes a page for each benchmark that `lines` are of: machine and date, the table, a summary."""
    for bench in dict.fromkeys(line.bench for line in lines):
        own = [line for line in lines if line.bench == bench]
        head = (f'# Benchmark {bench}\n\n`./dev bench {bench}` writes this page; '
                '[how to read it](../benchmarks.md#how-to-read-the-tables).')
        parts = [head, machine, markdown_table(own)] + [s + '.' for s in summary(own)]
        (folder / f'{bench}.md').write_text('\n\n'.join(parts) + '\n')


def as_json(lines, rows, machine):
    compared = [dataclasses.asdict(line) | {'result': line.verdict} for line, _ in lines]
    return {'machine': machine, 'lines': compared, 'errors': [text for _, text in errors_of(rows)], 'rows': rows}


def print_report(rows, margins, everything=False):
    """Prints the table. Returns the exit status."""
    lines = lines_of(rows, margins)
    table = [line for line, _ in lines] if everything else shown(lines)
    print(plain_table(table))
    for text in summary(table):
        print(text)
    failed = False
    for is_ours, text in errors_of(rows):
        print(('failed: ' if is_ours else 'not run: ') + text)
        failed = failed or is_ours
    over = [line for line in table if line.verdict == 'over']
    noisy = sum(line.verdict == 'over?' for line in table)
    held = sum(line.verdict == 'ok' for line in table)
    print(f'{held} within their margins, {noisy} over by less than the interval, {len(over)} over')
    return 1 if over or failed or not table else 0


def read_rows(paths):
    return [json.loads(text) for path in paths for text in pathlib.Path(path).read_text().splitlines() if text]


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(print_report(read_rows(sys.argv[1:]), read_margins()))
