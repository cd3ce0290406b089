#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plot.py DOCS [--check]: draws the pictures of DOCS/images from the tables of DOCS/benchmarks.

--check writes nothing: exit status 1 if a picture differs from what its table gives.
"""
import argparse
import html
import pathlib
import re
import sys

COLORS = {'Fusebox': '#0b6e4f', 'ONNX Runtime': '#8d99ae', 'TensorFlow Lite 2.9': '#c9ada7'}
TFLITE, ONNX = 'TensorFlow Lite 2.9.0 (May 2022)', 'ONNX Runtime 1.30.0 (September 2026)'  # version and date of release
STYLE = 'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#222"'
CAPTION = 36  # height
WIDTH, LEFT, BAR = 760, 150, 16


def table(page):
    """The rows of the first table of a page, as dicts."""
    lines = [line for line in page.read_text().splitlines() if line.startswith('| ')]
    head, *rows = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
    return [dict(zip(head, row)) for row in rows[1:]]


def measured(page):
    """Date and machine of a page: its line of run.machine, up to the system."""
    line = next(line for line in page.read_text().splitlines() if re.match(r'\d{4}-\d\d-\d\d, ', line))
    return 'Measured on ' + line.split(', preset ')[0]


def milliseconds(text):
    value, unit = text.split()
    return float(value) * {'us': 1e-3, 'ms': 1, 's': 1e3}[unit]


def text(x, y, words, anchor='start', weight='normal'):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-weight="{weight}" {STYLE}>{html.escape(words)}</text>'


def bar(x, y, width, color):
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{max(width, 1):.1f}" height="{BAR - 3}" fill="{color}"/>'


def svg(height, title, parts, caption):
    """`caption`: lines of text below `parts`, which take `height`."""
    below = [text(10, height + 12 + 18 * i, line) for i, line in enumerate(caption)]
    height += CAPTION
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(title)}">\n'
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n' +
            '\n'.join([text(10, 22, title, weight='bold'), *parts, *below]) + '\n</svg>\n')


def lstm(rows, when):
    """Bars of the f32 layers: each engine's time, as a multiple of Fusebox's."""
    jobs = {}
    for row in rows:
        if row['job'].startswith('f32') and row['peer'] != 'limit':
            times = jobs.setdefault(row['job'].removeprefix('f32, '), {'Fusebox': milliseconds(row['ours'])})
            times[row['peer'].replace('TFLite', 'TensorFlow Lite 2.9')] = milliseconds(row['peer measured'])
    scale = (WIDTH - LEFT - 250) / max(max(times.values()) / times['Fusebox'] for times in jobs.values())
    parts, y = [], 40
    for job, times in jobs.items():
        parts.append(text(10, y + 2 * BAR - 3, f'LSTM, {job}'))
        for name in COLORS:
            factor = times[name] / times['Fusebox']
            parts.append(bar(LEFT, y, factor * scale, COLORS[name]))
            label = f'{name} {times[name]:.3g} ms' + (f' ({factor:.3g}x)' if name != 'Fusebox' else '')
            parts.append(text(LEFT + factor * scale + 6, y + 11, label))
            y += BAR
        y += 10
    return svg(y, 'Time of one LSTM layer, f32, 128 steps, one thread (shorter is better)', parts, [f'{ONNX}, {TFLITE}', when])


def files(rows, when):
    """A bar for each public file, sorted: the time of Fusebox as a part of the peer's."""
    ratios = sorted(float(row['ours / peer']) for row in rows
                    if row['job'].endswith(', 1 thread') and row['peer'] == 'TFLite + XNNPACK')
    left, top, height = 50, 40, 200
    step, scale = (WIDTH - left - 20) / len(ratios), height / 1.2
    parts = []
    for level in (0.25, 0.5, 0.75, 1.0):
        y = top + height - level * scale
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{WIDTH - 20}" y2="{y:.1f}" stroke="{"#c1121f" if level == 1 else "#ddd"}"/>')
        parts.append(text(left - 6, y + 4, f'{level:g}', anchor='end'))
    for i, ratio in enumerate(ratios):
        parts.append(f'<rect x="{left + i * step:.1f}" y="{top + height - ratio * scale:.1f}" width="{step - 3:.1f}" '
                     f'height="{ratio * scale:.1f}" fill="{COLORS["Fusebox"]}"/>')
    return svg(top + height + 8, 'Time of Fusebox / time of TensorFlow Lite 2.9, one thread (below 1: Fusebox is faster)', parts,
               [f'{len(ratios)} public files, sorted; red line: {TFLITE} with its XNNPACK', when])


PICTURES = {'lstm': lstm, 'files': files}


def write(docs, check=False):
    """Returns the pictures that differed from their tables."""
    differ = []
    for name, draw in PICTURES.items():
        picture, page = docs / f'images/{name}-speed.svg', docs / f'benchmarks/{name}.md'
        drawn = draw(table(page), measured(page))
        if not picture.exists() or picture.read_text() != drawn:
            differ.append(picture)
            if not check:
                picture.write_text(drawn)
    return differ


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('docs', type=pathlib.Path)
    parser.add_argument('--check', action='store_true')
    arguments = parser.parse_args()
    differ = write(arguments.docs, arguments.check)
    if arguments.check and differ:
        sys.exit('\n'.join(f'{path}: differs from its table; python3 tests/bench/plot.py docs draws it' for path in differ))


if __name__ == '__main__':
    main()
