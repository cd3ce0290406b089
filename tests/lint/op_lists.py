#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is known of an op stands in host/graph/ops.def, once. Fails on a switch or an initializer elsewhere that names four or more
ops: it should be a column of that table. Usage: op_lists.py SOURCE_DIR"""
import pathlib
import re
import sys

LIMIT = 4

# Where a list of ops is not a fact about ops.
EXCEPT = {
    'converter/import/tables/': 'the import tables: what each source op is translated to',
    'plugins/xnnpack/ops/': 'the rows of what the delegate defines for XNNPACK',
    'host/run/': 'the closed list of ops that the host itself runs',
    'host/graph/calls.cc': 'the same list: how each passes its operands to functions',
    'converter/recognize/': 'recognizers: one case for each form in which a cell may be written',
    'plugins/rnn/rules/body_clips.cc': 'a recognizer, too',
    'plugins/common/activation.h': 'names of an option, not ops',
}


def blocks(text):
    """Yields (position, head, body) of every pair of braces."""
    open_at = []
    for i, c in enumerate(text):
        if c == '{':
            open_at.append(i)
        elif c == '}' and open_at:
            start = open_at.pop()
            yield start, text[max(0, start - 160):start], text[start:i]


def ops_in(body, names):
    return set(re.findall(r'\bOp::k(\w+)', body)) | {n for n in re.findall(r'"([A-Z][A-Z0-9_]+)"', body) if n in names}


def lists_of(path, names):
    text = path.read_text(encoding='utf-8')
    text = re.sub(r'//[^\n]*', '', text)
    text = re.sub(r'/\*.*?\*/', lambda m: '\n' * m.group(0).count('\n'), text, flags=re.S)
    for start, head, body in blocks(text):
        switch = re.search(r'switch\s*\([^{};]*\)\s*$', head)
        initializer = re.search(r'(=|\breturn|,|\(|\{)\s*$', head)
        if (switch or initializer) and len(found := ops_in(body, names)) >= LIMIT:
            yield text.count('\n', 0, start) + 1, 'switch' if switch else 'initializer', sorted(found)


def main(root):
    names = set(re.findall(r'FUSEBOX_OP\(\w+, "(\w+)"', (root / 'host/graph/ops.def').read_text(encoding='utf-8')))
    assert len(names) > 200, 'host/graph/ops.def was not read'
    bad = 0
    used = set()
    for layer in ('host', 'converter', 'cli', 'plugins'):
        for path in sorted((root / layer).rglob('*')):
            if path.suffix not in ('.cc', '.h', '.hpp', '.c'):
                continue
            place = path.relative_to(root).as_posix()
            excepted = next((prefix for prefix in EXCEPT if place.startswith(prefix)), None)
            for line, kind, ops in lists_of(path, names):
                if excepted:
                    used.add(excepted)
                    continue
                bad += 1
                print(f'{place}:{line}: this {kind} names {len(ops)} ops ({", ".join(ops[:5])}...): make it a column of host/graph/ops.def')
    for prefix in sorted(set(EXCEPT) - used):
        bad += 1
        print(f'op_lists.py: no list is left in {prefix}: remove its exception')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1])))
