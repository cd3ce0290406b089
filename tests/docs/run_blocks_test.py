#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_blocks.py on small pages: each kind of mistake fails with its line."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name('run_blocks.py')


class RunBlocks(unittest.TestCase):
    def check(self, page, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder)
            (source / 'samples').mkdir()
            (source / 'samples' / 'here.txt').write_text('one\ntwo\nthree\n')
            (source / 'page.md').write_text(page)
            (source / 'other.md').write_text('# A `b` title, twice\n')
            return subprocess.run([sys.executable, SCRIPT, source, source / 'build', 'page.md', *arguments],
                                  check=False, capture_output=True, text=True)

    def passes(self, page, *arguments):
        done = self.check(page, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def fails(self, page, message, *arguments):
        done = self.check(page, *arguments)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(message, done.stderr)

    def test_blocks_share_a_directory(self):
        said = self.passes('```sh\ncp samples/here.txt a\n```\ntext\n```sh\ngrep two a\n```\n')
        self.assertIn('2 blocks run, 0 not run', said)

    def test_a_command_that_fails(self):
        self.fails('# Page\n\n```sh\nfalse\ntrue\n```\n', 'page.md:3: the block exits with 1, not 0')
        self.fails('```sh\nfalse | true\n```\n', 'exits with 1')
        self.fails('```sh\necho $NO_SUCH_VARIABLE\n```\n', 'exits with')
        self.fails('```sh\nno_such_program --flag\n```\n', 'exits with 127')

    def test_an_expected_status(self):
        self.passes('<!-- exit: 3 -->\n```sh\nexit 3\n```\n')
        self.fails('<!-- exit: 3 -->\n```sh\ntrue\n```\n', '2: the block exits with 0, not 3')

    def test_a_block_that_is_not_run(self):
        said = self.passes('<!-- not run: needs a moon -->\n```sh\nfalse\n```\n')
        self.assertIn('not run needs a moon', said)
        self.assertIn('0 blocks run, 1 not run', said)
        self.fails('<!-- not run: too far away -->\n\n```sh\nfalse\n```\n', '3: the block exits with 1')

    def test_files(self):
        self.passes('<!-- file: a/b.txt -->\n```text\nx\n```\n```sh\ngrep -x x a/b.txt\n```\n')
        self.fails('<!-- file: ../b.txt -->\n```text\nx\n```\n', 'outside of the working directory')

    def test_parts_of_files(self):
        self.passes('<!-- part of: samples/here.txt -->\n```text\ntwo\nthree\n```\n')
        self.fails('<!-- part of: samples/here.txt -->\n```text\ntwo\nfour\n```\n', 'has no such text')

    def test_fences(self):
        self.fails('```\nfusebox run x\n```\n', '1: the block has no language')
        self.fails('text\n```sh\ntrue\n', '2: the block is not closed')

    def test_links(self):
        self.passes('# Top\n[a](other.md#a-b-title-twice) [b](#top) [c](https://x.org/y)\n')
        self.fails('[a](gone.md)\n', '1: the link gone.md leads nowhere')
        self.fails('[a](other.md#gone)\n', '1: other.md has no heading #gone')

    def test_names_of_files(self):
        self.passes('`samples/here.txt` and `elsewhere/here.txt`\n')
        self.fails('\n`samples/gone.txt`\n', '2: the source tree has no samples/gone.txt')

    def test_words(self):
        self.passes('one two\n', '--words', '2')
        self.fails('one two three\n', '3 words, more than 2', '--words', '2')


if __name__ == '__main__':
    unittest.main()
