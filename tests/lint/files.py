#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""files.py ROOT: what holds for each text file that git knows; exits 1 and names each breach.

Sources open with the licence line and have at most 400 lines; no file names a package host or a path of one machine.
"""
import pathlib
import re
import subprocess
import sys

MAX_LINES = 400
SPDX = 'SPDX-License-Identifier: Apache-2.0'
SOURCES = {'.h', '.hpp', '.c', '.cc', '.def', '.fbs', '.proto', '.py', '.sh', '.cmake', '.mjs', '.js'}
ANY_LENGTH = {'.def', '.fbs'}
FORBIDDEN = [
    (re.compile(r'\b(?:registry|deb|security|ftp|snapshot|archive)\.(?:npmjs|debian|ubuntu|yarnpkg)\.(?:org|com)\b'),
     'names a package host'),
    (re.compile(r'(?<![\w.$}~-])/(?:work|home|root)/\w'), 'names a path of one machine'),
]


def check(name, text):
    lines = text.splitlines()
    path = pathlib.Path(name)
    source = path.suffix in SOURCES or path.name in ('CMakeLists.txt', 'dev')
    if source and not any(SPDX in line for line in lines[:2]):
        yield f'{name}:1: no line "{SPDX}"'
    if source and path.suffix not in ANY_LENGTH and len(lines) > MAX_LINES:
        yield f'{name}: {len(lines)} lines, more than {MAX_LINES}: split it by subject'
    for number, line in enumerate(lines, 1):
        for pattern, what in FORBIDDEN:
            if pattern.search(line):
                yield f'{name}:{number}: {what}'


def main(root):
    listed = subprocess.run(['git', '-C', root, 'ls-files', '-z'], check=False, capture_output=True, text=True)
    if listed.returncode:
        print('SKIP: not a git checkout')
        return 77
    breaches = []
    names = [name for name in listed.stdout.split('\0') if name]
    for name in names:
        file = pathlib.Path(root, name)
        data = file.read_bytes() if file.is_file() else b''
        if b'\0' not in data:
            breaches += check(name, data.decode(errors='replace'))
    print('\n'.join([*breaches, f'{len(names)} files, {len(breaches)} breaches']))
    return 1 if breaches or not names else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
