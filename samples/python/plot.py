# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG files, without a library: bars, and points beside the diagonal."""
from xml.sax.saxutils import escape

WIDTH, LEFT, ROW = 640, 190, 26


def _write(path, height, parts):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            'font-family="sans-serif" font-size="13">')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('\n'.join([head, f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', *parts, '</svg>\n']))


def bars(path, title, rows, unit=''):
    """Draws a bar for each (label, value) of `rows`; values are at least 0."""
    most = max(value for _, value in rows) or 1
    parts = [f'<text x="10" y="22" font-weight="bold">{escape(title)}</text>']
    for number, (label, value) in enumerate(rows):
        y = 36 + ROW * number
        length = (WIDTH - LEFT - 110) * value / most
        parts += [f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(label)}</text>',
                  f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{ROW - 6}" fill="#3182bd"/>',
                  f'<text x="{LEFT + length + 6:.1f}" y="{y + 15}">{value:.4g} {escape(unit)}</text>']
    _write(path, 46 + ROW * len(rows), parts)


def points(path, title, x, y, x_label, y_label):
    """Draws points, from 0 to the largest coordinate on both axes, beside the line on which x equals y."""
    side, low, top = 360, 60, 36
    most = max(max(x), max(y)) or 1

    def at(value):
        return side * value / most
    parts = [f'<text x="10" y="22" font-weight="bold">{escape(title)}</text>',
             f'<path d="M{low} {top}V{top + side}H{low + side}" fill="none" stroke="#000"/>',
             f'<path d="M{low} {top + side}L{low + side} {top}" stroke="#bbb"/>',
             f'<text x="{low + side / 2}" y="{top + side + 34}" text-anchor="middle">{escape(x_label)}</text>',
             f'<text transform="translate(18 {top + side / 2}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>']
    for value in (0, most / 2, most):
        parts += [f'<text x="{low + at(value):.1f}" y="{top + side + 16}" text-anchor="middle">{value:.2g}</text>',
                  f'<text x="{low - 6}" y="{top + side - at(value) + 4:.1f}" text-anchor="end">{value:.2g}</text>']
    parts += [f'<circle cx="{low + at(a):.1f}" cy="{top + side - at(b):.1f}" r="2.5" fill="#e6550d" fill-opacity="0.6"/>'
              for a, b in zip(x, y)]
    _write(path, top + side + 48, parts)
