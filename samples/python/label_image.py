# SPDX-License-Identifier: Apache-2.0
"""label_image.py MODEL IMAGE.ppm OUT.svg [--labels FILE] [--top N]: classifies a picture, and draws it with the scores.

IMAGE is a binary PPM (P6), which every image tool writes. The picture is scaled to the input of the model; float
inputs get values from -1 to 1, 8-bit ones the bytes.
"""
import argparse
import base64
import struct
import zlib
from xml.sax.saxutils import escape

import numpy as np

import fusebox


def read_ppm(path):
    """An array [height, width, 3] of bytes."""
    with open(path, 'rb') as file:
        words, data = [], file.read()
    at = 0
    while len(words) < 4:
        end = at
        while data[end:end + 1] not in (b' ', b'\n', b'\t', b'\r', b''):
            end += 1
        if data[at:end].startswith(b'#'):
            at = data.index(b'\n', at) + 1
            continue
        if end > at:
            words.append(data[at:end])
        at = end + 1
    if words[0] != b'P6' or words[3] != b'255':
        raise SystemExit(f'{path}: not a binary PPM with 8 bits (P6, 255)')
    width, height = int(words[1]), int(words[2])
    return np.frombuffer(data, np.uint8, width * height * 3, at).reshape(height, width, 3)


def resized(picture, height, width):
    """The nearest pixels."""
    rows = np.arange(height) * picture.shape[0] // height
    columns = np.arange(width) * picture.shape[1] // width
    return picture[rows][:, columns]


def png(picture):
    """The picture as a PNG file."""
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    height, width, _ = picture.shape
    rows = b''.join(b'\0' + row.tobytes() for row in picture)
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


def drawn(picture, rows):
    """An SVG of the picture with a bar for each (label, score)."""
    image = base64.b64encode(png(picture)).decode()
    height = max(240, 30 * len(rows) + 20)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="600" height="{height}" font-family="sans-serif">',
             f'<image href="data:image/png;base64,{image}" x="10" y="10" width="220" height="220"/>']
    for i, (label, score) in enumerate(rows):
        y = 10 + 30 * i
        parts.append(f'<rect x="240" y="{y}" width="{max(0, score) * 340:.0f}" height="24" fill="#9ecae1"/>'
                     f'<text x="246" y="{y + 17}">{escape(label)}: {score:.3f}</text>')
    return '\n'.join([*parts, '</svg>\n'])


def main():
    parser = argparse.ArgumentParser()
    for name in ('model', 'image', 'output'):
        parser.add_argument(name)
    parser.add_argument('--labels')
    parser.add_argument('--top', type=int, default=5)
    arguments = parser.parse_args()

    session = fusebox.Session(arguments.model)
    image, = session.inputs
    _, height, width, _ = image.shape
    picture = read_ppm(arguments.image)
    pixels = resized(picture, height, width)[None]
    if image.dtype == np.float32:
        pixels = pixels.astype(np.float32) / np.float32(127.5) - 1
    scores, = session.run(pixels.astype(image.dtype)).values()
    scores = scores.reshape(-1).astype(np.float32)
    quantization = session.outputs[0].quantization
    if quantization:
        scores = (scores - quantization.zero_points) * quantization.scales

    labels = open(arguments.labels, encoding='utf-8').read().splitlines() if arguments.labels else None
    best = [(labels[i] if labels else f'class {i}', float(scores[i])) for i in np.argsort(-scores)[:arguments.top]]
    for label, score in best:
        print(f'{score:.4f}  {label}')
    with open(arguments.output, 'w', encoding='utf-8') as file:
        file.write(drawn(picture, best))


if __name__ == '__main__':
    main()
