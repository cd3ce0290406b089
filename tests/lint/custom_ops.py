#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The converter learns what a plugin's op is from kernels and manifests. Fails if a custom op that a manifest below plugins/ provides
is named in converter/. TensorFlow ops may have the same names: the Keras importer writes layers as such ops, Op("StringLower", ...),
and outputs.cc has the outputs of their TensorFlow definitions, {"StringLower", "output", ...}.
Usage: custom_ops.py SOURCE_DIR"""
import pathlib
import re
import sys


def custom_ops(root):
    """The custom ops that manifests below plugins/ list, with their manifest."""
    ops = {}
    for path in sorted((root / 'plugins').rglob('fusebox-plugin.json*')):
        for name in re.findall(r'"custom":\s*"([^"]+)"', path.read_text(encoding='utf-8')):
            ops[name] = path.relative_to(root).as_posix()
    return ops


def main(root):
    ops = custom_ops(root)
    assert len(ops) > 5, 'no manifest was read'
    bad = 0
    for path in sorted((root / 'converter').rglob('*')):
        if path.suffix not in ('.cc', '.h', '.def'):
            continue
        for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
            if path.is_relative_to(root / 'converter/import/keras'):
                line = re.sub(r'\bOps?\("\w+"', '', line)
            if path == root / 'converter/import/saved_model/outputs.cc':
                line = re.sub(r'^ *\{"\w+", "[a-z_,]+", "[\w,]*", "\w*"\},$', '', line)
            for name in re.findall(r'"([^"]*)"', line):
                if name in ops:
                    bad += 1
                    print(f'{path.relative_to(root).as_posix()}:{number}: "{name}" is an op of {ops[name]}: use its kernels and its '
                          'manifest ("quantization")')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1])))
