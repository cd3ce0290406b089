#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layers.py ROOT: holds every #include of the tree against layers.txt; exits 1 and names each breach."""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
SOURCES = {'.h', '.hpp', '.c', '.cc', '.def', '.inc'}


def read_layers(path, root):
    """Layer -> all layers that it may include, itself among them."""
    below = {}
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith('#'):
            continue
        name, lower = line.split(':')
        names = [name]
        if name.endswith('/*'):
            names = [str(d.relative_to(root)) for d in sorted(root.glob(name)) if d.is_dir()]
        below.update({n: set(lower.split()) for n in names})

    def closure(name):
        return {name}.union(*(closure(lower) for lower in below[name]))

    return {name: closure(name) for name in below}


def layer_of(path, layers):
    return max((name for name in layers if path == name or path.startswith(name + '/')), key=len, default=None)


def included_path(text, file, root):
    """The included file from the root of the tree; None for a file of somebody else's."""
    if text.startswith('fusebox/'):
        return 'sdk/include/' + text
    beside = (file.parent / text).resolve()
    if beside.is_file() and beside.is_relative_to(root):
        return str(beside.relative_to(root))
    return text


def main(root):
    root = pathlib.Path(root).resolve()
    layers = read_layers(pathlib.Path(__file__).with_name('layers.txt'), root)
    breaches = files = 0
    for top in sorted({name.split('/')[0] for name in layers}):
        for file in sorted((root / top).rglob('*')):
            name = str(file.relative_to(root))
            layer = layer_of(name, layers)
            if file.suffix not in SOURCES or layer is None:
                continue
            files += 1
            for number, line in enumerate(file.read_text(errors='replace').splitlines(), 1):
                match = INCLUDE.match(line)
                target = layer_of(included_path(match[1], file, root), layers) if match else None
                if target and target not in layers[layer]:
                    print(f"{name}:{number}: layer '{layer}' may not include '{target}'")
                    breaches += 1
    print(f'{files} files, {breaches} breaches')
    return 1 if breaches or not files else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
