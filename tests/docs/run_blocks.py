#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_blocks.py SOURCE BUILD PAGE [--cxx COMPILER] [--sanitize LIST]: runs what a Markdown page tells its reader to run.

Blocks marked ```sh run in order, in one fresh directory, with the programs, plugins and Python package of BUILD. A comment on the
line before a block changes that:

    <!-- not run: REASON -->   the block is skipped, and the reason is printed
    <!-- exit: N -->           the block must exit with status N
    <!-- file: NAME -->        the block (of any language) is written to the file NAME, at this point of the page
    <!-- part of: FILE -->     the block must stand in the file FILE of the source tree, from its first line to its last

$PREFIX is an installation of BUILD, made for pages that use it; samples is the folder of the source tree. Exits 1 and names the
line when a block fails, when a fence has no language, or when a link, an anchor or a file of the tree does not exist.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

FENCE = re.compile(r'^(\s*)```(.*)$')
MARK = re.compile(r'^\s*<!--\s*(not run|exit|file|part of):\s*(.+?)\s*-->\s*$')
LINK = re.compile(r'\]\(([^)\s]+)\)|src="([^"]+)"')
# Files of the source tree that a page names: a folder of the tree, then a path.
FILE = re.compile(r'`((?:sdk|host|converter|plugins|cli|samples|tests|docs|cmake)/[\w./-]+)`')


class Wrong(Exception):
    """The page is wrong, for the reason given."""


@dataclass
class Block:
    line: int  # of the opening fence
    language: str
    text: str
    mark: str = ''
    value: str = ''


def read_blocks(lines):
    blocks, opened, mark = [], None, ('', '')
    for number, line in enumerate(lines, 1):
        fence = FENCE.match(line)
        if opened and fence and not fence[2].strip():
            blocks.append(opened)
            opened = None
        elif opened:
            opened.text += line.removeprefix(indent) + '\n'
        elif fence:
            indent = fence[1]
            opened = Block(number, fence[2].strip(), '', *mark)
        found = MARK.match(line)
        mark = (found[1], found[2]) if found and not opened else ('', '')
    if opened:
        raise Wrong(f'{opened.line}: the block is not closed')
    return blocks


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    out, fenced = set(), False
    for line in path.read_text().splitlines():
        fenced ^= bool(FENCE.match(line))
        if line.startswith('#') and not fenced:
            title = line.lstrip('#').strip().lower()
            out.add(re.sub(r'[^\w\- ]', '', title).replace(' ', '-'))
    return out


def check_links(page, source):
    fenced = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fenced ^= bool(FENCE.match(line))
        for name in [] if fenced else FILE.findall(line):
            if not (source / name).exists():
                raise Wrong(f'{number}: the source tree has no {name}')
        for found in [] if fenced else LINK.findall(line):
            target, _, anchor = (found[0] or found[1]).partition('#')
            if target.startswith(('http:', 'https:', 'mailto:')):
                continue
            file = (page.parent / target) if target else page
            if not file.exists():
                raise Wrong(f'{number}: the link {target} leads nowhere')
            if anchor and anchor not in anchors(file):
                raise Wrong(f'{number}: {target or "this page"} has no heading #{anchor}')


def environment(arguments, work, prefix):
    env = {name: value for name, value in os.environ.items() if not name.startswith('FUSEBOX_')}
    env['PATH'] = f'{arguments.build}/bin:{env["PATH"]}'
    env['FUSEBOX_PLUGIN_PATH'] = f'{arguments.build}/plugins'
    env['FUSEBOX_PREFIX'] = arguments.build
    env['PYTHONPATH'] = f'{arguments.source}/python'
    env['HOME'] = str(work / 'home')
    env['XDG_CACHE_HOME'] = str(work / 'home' / '.cache')
    env['XDG_DATA_HOME'] = str(work / 'home' / '.local' / 'share')
    env['CMAKE_GENERATOR'] = 'Ninja'
    env['PREFIX'] = str(prefix)
    if arguments.python:
        python = work / 'bin' / 'python3'
        python.parent.mkdir(exist_ok=True)
        python.write_text(f'#!/bin/sh\nexec {arguments.python} "$@"\n')
        python.chmod(0o755)
        env['PATH'] = f'{python.parent}:{env["PATH"]}'
    if arguments.cxx:
        env['CXX'] = arguments.cxx
    if arguments.sanitize:
        env['CXXFLAGS'] = f'-fsanitize={arguments.sanitize}'
        compiler = work / 'bin' / 'c++'  # for pages that start the compiler themselves
        compiler.parent.mkdir(exist_ok=True)
        compiler.write_text(f'#!/bin/sh\nexec {arguments.cxx or "g++"} -fsanitize={arguments.sanitize} "$@"\n')
        compiler.chmod(0o755)
        env['PATH'] = f'{compiler.parent}:{env["PATH"]}'
    return env


def run(block, folder, env):
    """Runs one block; a block cannot set variables for the next one."""
    done = subprocess.run(['bash', '-euo', 'pipefail', '-c', block.text], cwd=folder, env=env, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end='')
    expected = int(block.value) if block.mark == 'exit' else 0
    if done.returncode != expected:
        raise Wrong(f'{block.line}: the block exits with {done.returncode}, not {expected}')


def write(block, folder):
    file = (folder / block.value).resolve()
    if not file.is_relative_to(folder):
        raise Wrong(f'{block.line}: {block.value} lies outside of the working directory')
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(block.text)


def check_part(block, source):
    file = source / block.value
    if not file.is_file() or block.text not in file.read_text():
        raise Wrong(f'{block.line}: {block.value} has no such text')


def install(build, prefix):
    done = subprocess.run(['cmake', '--install', build, '--prefix', prefix], check=False, capture_output=True, text=True)
    if done.returncode:
        raise Wrong(f'cmake --install failed:\n{done.stdout}{done.stderr}')


def follow(page, arguments, work):
    source, folder, prefix = pathlib.Path(arguments.source), work / 'page', work / 'prefix'
    blocks = read_blocks(page.read_text().splitlines())
    check_links(page, source)
    for made in (folder, work / 'home'):
        made.mkdir()
    shutil.copytree(source / 'samples', folder / 'samples')
    env = environment(arguments, work, prefix)
    counts = {'run': 0, 'skipped': 0}
    for block in blocks:
        if not block.language:
            raise Wrong(f'{block.line}: the block has no language: sh is run; cpp, json, text and others are not')
        print(f'== {page.name}:{block.line}: {block.language} {block.mark} {block.value}'.rstrip(), flush=True)
        if block.mark == 'file':
            write(block, folder)
        elif block.mark == 'part of':
            check_part(block, source)
        elif block.mark == 'not run':
            counts['skipped'] += 1
        elif block.language == 'sh':
            if 'PREFIX' in block.text and not prefix.exists():
                install(arguments.build, prefix)
            run(block, folder, env)
            counts['run'] += 1
    print(f'{page.name}: {counts["run"]} blocks run, {counts["skipped"]} not run')


def main():
    parser = argparse.ArgumentParser()
    for name in ('source', 'build', 'page'):
        parser.add_argument(name)
    parser.add_argument('--cxx', default='')
    parser.add_argument('--sanitize', default='')
    parser.add_argument('--python', default='', help='the python3 of the blocks')
    parser.add_argument('--words', type=int, default=0, help='the page has at most so many words')
    arguments = parser.parse_args()
    page = pathlib.Path(arguments.source, arguments.page)
    words = len(page.read_text().split())
    with tempfile.TemporaryDirectory(prefix='fusebox-docs-') as work:
        try:
            if arguments.words and words > arguments.words:
                raise Wrong(f'1: the page has {words} words, more than {arguments.words}')
            follow(page, arguments, pathlib.Path(work).resolve())
        except Wrong as error:
            print(f'{arguments.page}:{error}', file=sys.stderr)
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
