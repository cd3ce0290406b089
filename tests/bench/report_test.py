#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of report.py on rows whose ratios are known, and of run.py on programs that fail or hang."""
import contextlib
import io
import json
import os
import pathlib
import random
import tempfile
import time
import unittest

import plot
import report
import run


def rows(ours, theirs, bench='lstm', job='f32, 128 units', peer='TFLite', run=0, metric='run', exact=False):
    made = []
    for who, values in (('ours', ours), (peer, theirs)):
        made += [{'bench': bench, 'job': job, 'metric': metric, 'unit': 'ms', 'exact': exact, 'runner': who, 'run': run,
                  'round': i, 'value': value} for i, value in enumerate(values)]
    return made


def margin(limit, bench='lstm', job='*', metric='run', peer='TFLite'):
    return report.Margin(bench, job, metric, peer, limit, 'test')


def only(made, *margins):
    lines = report.shown(report.lines_of(made, margins))
    assert len(lines) == 1, lines
    return lines[0]


def printed(made, margins):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = report.print_report(made, margins)
    return status, out.getvalue()


def noisy(median, spread, count, seed):
    draw = random.Random(seed)
    return [median * (1 + draw.uniform(-spread, spread)) for _ in range(count)]


class Ratios(unittest.TestCase):
    def test_is_that_of_the_medians(self):
        line = only(rows([1, 2, 9, 2, 2, 2, 2], [4, 4, 4, 40, 4, 4, 4]), margin(1))
        self.assertEqual((line.ours, line.theirs, line.ratio), (2, 4, 0.5))
        self.assertEqual(line.verdict, 'ok')

    def test_pairs_rounds_that_both_have(self):
        made = rows([1, 1, 100], [2, 2])
        line = only(made, margin(1))
        self.assertEqual((line.rounds, line.ratio), (2, 0.5))

    def test_pairs_each_peer_with_its_own_rounds(self):
        """Peers of files are measured in processes of their own; their rounds have other numbers."""
        made = rows([1, 1, 1], [2, 2, 2])
        made += [row | {'round': row['round'] + 3} for row in rows([4, 4, 4], [2, 2, 2], peer='ORT')]
        lines = report.shown(report.lines_of(made, [margin(1), margin(None, peer='ORT')]))
        self.assertEqual([(line.peer, line.ours, line.ratio) for line in lines], [('TFLite', 1, 0.5), ('ORT', 4, 2)])

    def test_runs_are_apart(self):
        made = rows([1] * 6, [2] * 6) + rows([3] * 6, [2] * 6, run=1)
        line = only(made, margin(1))
        self.assertEqual(line.rounds, 12)
        self.assertAlmostEqual(line.low, 0.5)
        self.assertAlmostEqual(line.high, 1.5)

    def test_a_peer_that_needs_nothing_has_no_ratio(self):
        self.assertEqual([l.peer for l, _ in report.lines_of(rows([1] * 3, [0] * 3), [])], ['-'])


class Intervals(unittest.TestCase):
    def test_holds_the_true_ratio_about_as_often_as_it_says(self):
        held = 0
        for seed in range(30):
            pairs = list(zip(noisy(2, 0.3, 25, seed), noisy(4, 0.3, 25, 1000 + seed)))
            low, high = report.interval([pairs], seed)
            held += low <= 0.5 <= high
        self.assertGreaterEqual(held, 26)

    def test_is_narrower_of_quiet_rounds(self):
        width = {}
        for spread in (0.02, 0.3):
            low, high = report.interval([list(zip(noisy(1, spread, 30, 1), noisy(1, spread, 30, 2)))])
            width[spread] = high - low
        self.assertLess(width[0.02] * 5, width[0.3])

    def test_of_few_rounds_is_their_range_and_of_two_none(self):
        self.assertEqual(report.interval([[(1, 2), (2, 2), (3, 2)]]), (0.5, 1.5))
        self.assertEqual(report.interval([[(1, 2), (2, 2)]]), (None, None))

    def test_of_a_count_is_its_ratio(self):
        line = only(rows([3], [100], exact=True), margin(0.02))
        self.assertEqual((line.low, line.high, line.verdict), (0.03, 0.03, 'over'))

    def test_joins_rounds_beyond_the_most(self):
        joined = report.condense([(i, 2 * i) for i in range(1000)])
        self.assertEqual(len(joined), report.MOST_ROUNDS)
        self.assertEqual(joined[0], (12.0, 24.0))


class Margins(unittest.TestCase):
    def test_over_only_when_the_whole_interval_is(self):
        quiet = rows(noisy(1.1, 0.01, 20, 1), noisy(1, 0.01, 20, 2))
        loud = rows(noisy(1.1, 0.8, 20, 5), noisy(1, 0.8, 20, 4))
        self.assertEqual(only(quiet, margin(1.03)).verdict, 'over')
        line = only(loud, margin(report.ratio_of_medians(list(zip(
            [r['value'] for r in loud if r['runner'] == 'ours'],
            [r['value'] for r in loud if r['runner'] != 'ours']))) - 0.01))
        self.assertEqual(line.verdict, 'over?')

    def test_the_exit_status_is_1_when_one_is_over(self):
        good, bad = rows([1] * 8, [2] * 8), rows([3] * 8, [2] * 8, job='f32, 512 units')
        self.assertEqual(printed(good, [margin(1)])[0], 0)
        status, text = printed(good + bad, [margin(1)])
        self.assertEqual(status, 1)
        self.assertIn('1 within their margins, 0 over by less than the interval, 1 over', text)

    def test_the_exit_status_is_1_when_ours_failed_or_nothing_was_measured(self):
        good = rows([1] * 8, [2] * 8)
        error = {'bench': 'lstm', 'job': 'j', 'error': 'declines'}
        self.assertEqual(printed(good + [error | {'runner': 'ours'}], [margin(1)])[0], 1)
        self.assertEqual(printed(good + [error | {'runner': 'TFLite'}], [margin(1)])[0], 0)
        self.assertEqual(printed([], [margin(1)])[0], 1)

    def test_the_first_that_matches_counts(self):
        line = only(rows([1] * 8, [2] * 8), margin(0.4, job='f32, 1*'), margin(1))
        self.assertEqual(line.margin, 0.4)

    def test_without_a_peer_the_value_is_held(self):
        made = [r for r in rows([0.4] * 8, [1] * 8) if r['runner'] == 'ours']
        line = only(made, margin(0.3, peer='-'))
        self.assertEqual((line.theirs, line.ratio, line.verdict), (None, 0.4, 'over'))

    def test_the_file_is_read(self):
        margins = report.read_margins()
        self.assertEqual(report.find_margin(margins, 'lstm', 'f32, 128 units', 'run', 'TFLite').limit, 0.0667)
        self.assertIsNone(report.find_margin(margins, 'lstm', 'f32, 128 units', 'run', 'limit').limit)
        self.assertIsNone(report.find_margin(margins, 'cache', 'llm (small), reload', 'open', 'unshared'))
        self.assertIsNone(report.find_margin(margins, 'cache', 'fc (small), reload', 'init', 'unshared').limit)


class Pages(unittest.TestCase):
    def test_a_page_for_each_benchmark_that_was_measured(self):
        line = only(rows([1] * 8, [2] * 8), margin(1))
        with tempfile.TemporaryDirectory() as folder:
            report.write_docs(pathlib.Path(folder), [line], '2026-01-01, a machine.')
            self.assertEqual(os.listdir(folder), ['lstm.md'])
            self.assertEqual((pathlib.Path(folder) / 'lstm.md').read_text(), '''# Benchmark lstm

`./dev bench lstm` writes this page; [how to read it](../benchmarks.md#how-to-read-the-tables).

2026-01-01, a machine.

| job | metric | ours | peer | peer measured | ours / peer | 95 % interval | margin | result |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| f32, 128 units | run | 1.00 ms | TFLite | 2.00 ms | 0.500 | 0.500 to 0.500 | 1.00 | ok |
''')

    def test_this_project_has_all_pages(self):
        pages = (report.HERE / '../../docs/benchmarks').resolve()
        for bench in dict.fromkeys(m.bench for m in report.read_margins()):
            self.assertTrue((pages / f'{bench}.md').exists(), bench)

    def test_pictures_are_drawn_from_the_tables(self):
        self.assertEqual(plot.write((report.HERE / '../../docs').resolve(), check=True), [])

    def test_pictures_name_the_versions_that_are_pinned(self):
        pinned = json.loads((report.HERE / '../peers/package.json').read_text())['dependencies']
        self.assertIn(f'ONNX Runtime {pinned["onnxruntime-node"]} ', plot.ONNX)

    def test_pictures_show_date_and_machine_of_their_page(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / 'lstm.md'
            page.write_text('# Benchmark\n\n2026-01-02, a CPU, 2 CPUs, Debian, preset release, commit 1, load 1.5 at the start.\n')
            self.assertEqual(plot.measured(page), 'Measured on 2026-01-02, a CPU, 2 CPUs, Debian')

    def test_says_how_many_files_are_faster_by_peer(self):
        made = [row for job, ours, peer in (('a, 1 thread', 1, 'TFLite'), ('b, 1 thread', 3, 'TFLite'), ('a, 1 thread', 1, 'ORT'))
                for row in rows([ours] * 8, [2] * 8, bench='files', job=job, peer=peer)]
        lines = report.shown(report.lines_of(made, [margin(None, bench='files', peer='*')]))
        self.assertEqual(report.summary([line for line in lines if line.peer != '-']),
                         ['2 files, 1 thread, TFLite: median 1.00, largest 1.50', '1 files, 1 thread, ORT: median 0.500, largest 0.500'])


class Runs(unittest.TestCase):
    ROW = {'bench': 'lstm', 'job': 'j', 'metric': 'run', 'unit': 'ms', 'runner': 'ours', 'round': 0, 'value': 1.5}

    def started(self, script, deadline=None):
        with contextlib.redirect_stderr(io.StringIO()):
            return run.run('lstm', ['sh', '-c', script], 4, deadline)

    def test_adds_the_number_of_the_run(self):
        self.assertEqual(self.started(f"echo noise; echo '{json.dumps(self.ROW)}'"), [self.ROW | {'run': 4}])

    def test_of_a_program_that_fails_is_an_error_of_ours(self):
        row, error = self.started(f"echo '{json.dumps(self.ROW)}'; exit 3")
        self.assertEqual((row['value'], error['runner'], error['error']), (1.5, 'ours', 'exit status 3'))

    def test_ends_at_the_deadline_and_keeps_whole_rows(self):
        start = time.monotonic()
        row, error = self.started(f"echo '{json.dumps(self.ROW)}'; printf '{{'; exec sleep 20", start + 0.5)
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual((row['value'], error['error']), (1.5, 'no time is left'))

    def test_without_models_names_what_is_missing(self):
        benchmarks = run.Benchmarks(report.HERE, True, None)
        rows = run.measure(benchmarks, ['files'], 1)
        self.assertEqual([row['error'] for row in rows], ['FUSEBOX_MODELS is not set'])


class Numbers(unittest.TestCase):
    def test_have_three_digits(self):
        for value, text in ((1234.5, '1234'), (123.4, '123'), (12.34, '12.3'), (1.234, '1.23'), (0.1234, '0.123'),
                            (0.01234, '0.0123'), (0.001234, '0.00123'), (0, '0'), (None, '-')):
            self.assertEqual(report.digits(value), text)


if __name__ == '__main__':
    unittest.main()
