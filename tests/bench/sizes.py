#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sizes.py BUILD [--docs DIR]: sizes of the libraries that a program ships, stripped, beside the peers, and what each part of
libfusebox.so takes, from the linker's map. FUSEBOX_PEER_DIR holds the peers. --docs writes benchmarks/sizes.md of that folder.
Exit status 1: libfusebox.so and xnnpack.so are larger than LIMIT together.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIMIT = 4_500_000
HEAD = '''# Sizes

`./dev sizes` writes this page: stripped files of the release build. TensorFlow Lite and ONNX Runtime contain their
kernels.'''
ROWS = 24  # of the second table
SECTION = re.compile(r'^ (\.\S+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+(\S.*\.o\)?)$')
IN_FILE = ('.text', '.rodata', '.data', '.eh_frame', '.gcc_except_table', '.init_array')


def stripped(library):
    with tempfile.NamedTemporaryFile() as copy:
        subprocess.run(['strip', '-o', copy.name, library], check=True)
        return os.path.getsize(copy.name)


def part(path):
    """'host/graph' for host/libfusebox_graph.a(unity_host_graph_0_cxx.cxx.o), 'cpu: compare' for a kernel's file."""
    archive, _, member = path.rpartition('/')[2].rstrip(')').partition('(')
    if archive == 'libfusebox_cpu_static.a':
        return 'cpu: ' + member.split('.')[0]
    found = re.match(r'libfusebox_(\w+)\.a$', archive)
    if not found:
        return 'startup'
    return {'c': 'host/c', 'host': 'host'}.get(found[1], f'host/{found[1]}')


def parts(link_map):
    """Bytes by part, from the sections that the linker kept."""
    text = link_map.read_text().partition('Linker script and memory map')[2]
    sizes = collections.Counter()
    for line in re.sub(r'^( \.\S+)\n {16,}(?=0x)', r'\1 ', text, flags=re.M).splitlines():
        found = SECTION.match(line)
        if found and found[1].startswith(IN_FILE):
            sizes[part(found[3])] += int(found[2], 16)
    return sizes


def table(head, rows):
    widths = '|'.join('---' if i == 0 else '---:' for i in range(len(head)))
    return '\n'.join([f'| {" | ".join(head)} |', f'|{widths}|', *(f'| {" | ".join(row)} |' for row in rows)])


def libraries(build, peers):
    plugin = next(build.glob('plugins/fusebox.xnnpack/*/xnnpack.so'))
    ours = [('`libfusebox.so`, cpu kernels inside', stripped(build / 'lib/libfusebox.so')), ('`xnnpack.so`', stripped(plugin))]
    total = sum(size for _, size in ours)
    loaded = subprocess.run(['ldd', plugin], check=True, capture_output=True, text=True).stdout
    xnnpack = re.search(r'=> (\S*libXNNPACK\S*)', loaded)
    others = [('libXNNPACK of the system, apart', stripped(os.path.realpath(xnnpack[1])))] if xnnpack else []
    for name, file in (('TensorFlow Lite 2.9, C library', 'libtensorflowlite_c.so'), ('ONNX Runtime', 'libonnxruntime.so')):
        if peers and (peers / file).exists():
            others.append((name, stripped(os.path.realpath(peers / file))))
    return [*ours, ('together', total), *others], total


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument('build', type=pathlib.Path)
    arguments.add_argument('--docs', type=pathlib.Path)
    options = arguments.parse_args()
    peers = os.environ.get('FUSEBOX_PEER_DIR')
    rows, total = libraries(options.build, pathlib.Path(peers) if peers else None)
    by_library = table(('library', 'MB'), [(name, f'{size / 1e6:.2f}') for name, size in rows])

    sizes = parts(options.build / 'fusebox.link.map')
    top = sizes.most_common(ROWS)
    rest = collections.Counter()
    for name, size in sizes.items():
        if name not in dict(top):
            rest['cpu: other files' if name.startswith('cpu') else 'host: other folders'] += size
    shown = top + rest.most_common() + [('relocations, symbols, alignment', rows[0][1] - sum(sizes.values()))]
    by_part = table(('part of `libfusebox.so`', 'KB'), [(name, f'{size / 1e3:.0f}') for name, size in shown])
    print(by_library, by_part, sep='\n\n')
    if options.docs:
        (options.docs / 'benchmarks/sizes.md').write_text(f'{HEAD}\n\n{by_library}\n\n{by_part}\n')
    if total > LIMIT:
        sys.exit(f'libfusebox.so and xnnpack.so take {total / 1e6:.2f} MB, more than {LIMIT / 1e6:.2f}')


if __name__ == '__main__':
    main()
