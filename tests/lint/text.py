#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""text.py ROOT: rules for the text of comments, statements and documents; exits 1 and names each breach.

A comment in product sources is a sentence whose subject is the thing ("Returns...", "Holds..."): it does not begin with
What, Whether, Of, Those or Not, and repeats the noun instead of "those of", "that of" or "of its own". A declaration
with an initializer declares one variable, and no comma operator separates statements (statements.py). A line of a
Markdown document ends at 120 columns, except in tables, code blocks and HTML, and where a link or an image is alone.
"""
import pathlib
import re
import subprocess
import sys

import statements

PRODUCT = ('sdk/', 'doors/', 'host/', 'converter/', 'plugins/', 'cli/', 'models/', 'samples/')
SOURCES = {'.h', '.hpp', '.c', '.cc', '.def', '.js', '.map'}
CODE = ('.h', '.hpp', '.c', '.cc', '.c.in', '.cc.in')
# Their kernels move to one matrix product, which rewrites them with their comments.
EXCEPT = ('plugins/cpu/',)
GENERATED = {'docs/abi-reference.md', 'docs/manifest-reference.md'}
MAX_COLUMNS = 120

# A string literal is matched first, so that "//" in it starts no comment.
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)', re.DOTALL)
START = re.compile(r'(What|Whether|Of|Those|Not)\b')
PRONOUN = re.compile(r'\b(those of|that of|of (?:its|their) own)\b', re.IGNORECASE)
MARKER = re.compile(r'^\s*(?://+|/?\*+(?!/))? ?(.*?)\s*(?:\*/)?$')
LINK_ALONE = re.compile(r'\s*(?:[-*] )?(?:!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\]|:\s*\S+)|<?https?://\S+)[.,]?\s*')


def comments(text):
    """Yields each comment as a list of (line number, text); line comments below each other are one."""
    comment, last = [], None
    for token in TOKEN.finditer(text):
        if not token['line'] and not token['block']:
            continue
        number = text.count('\n', 0, token.start()) + 1
        alone = text[text.rfind('\n', 0, token.start()) + 1:token.start()].strip() == ''
        lines = [(number + i, MARKER.match(line)[1]) for i, line in enumerate(token[0].split('\n'))]
        if not (token['line'] and alone and last == number - 1):
            yield comment
            comment = []
        comment += lines
        last = number if token['line'] and alone else None
    yield comment


def check_source(name, text):
    for comment in comments(text):
        for number, line in comment:
            if begin := START.match(line):
                yield f'{name}:{number}: a comment begins with "{begin[1]}"; name its subject ("Returns...")'
        words = ' '.join(line for _, line in comment)
        for use in PRONOUN.finditer(words):
            left = use.start()
            for number, line in comment:  # the line where it begins
                if left <= len(line):
                    break
                left -= len(line) + 1
            yield f'{name}:{number}: a comment uses "{use[1]}"; repeat the noun'


def check_document(name, text):
    fence = html = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r'\s*(```|~~~)', line):
            fence = not fence
        elif not fence:
            html = html or '<!--' in line
            alone = LINK_ALONE.fullmatch(line) or line.lstrip().startswith(('|', '<'))
            if len(line) > MAX_COLUMNS and not html and not alone:
                yield f'{name}:{number}: {len(line)} columns, more than {MAX_COLUMNS}'
            html = html and '-->' not in line


def check(name, text):
    path = pathlib.PurePath(name)
    if name.startswith(PRODUCT) and not name.startswith(EXCEPT):
        if path.suffix in SOURCES:
            yield from check_source(name, text)
        if name.endswith(CODE):
            yield from statements.check(name, text)
    if path.suffix == '.md' and name not in GENERATED:
        yield from check_document(name, text)


def main(root):
    listed = subprocess.run(['git', '-C', root, 'ls-files', '-z'], check=False, capture_output=True, text=True)
    if listed.returncode:
        print('SKIP: not a git checkout')
        return 77
    breaches = []
    names = [name for name in listed.stdout.split('\0') if name]
    for name in names:
        file = pathlib.Path(root, name)
        if file.is_file():
            breaches += check(name, file.read_text(errors='replace'))
    print('\n'.join([*breaches, f'{len(names)} files, {len(breaches)} breaches']))
    return 1 if breaches or not names else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
