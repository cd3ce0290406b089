# SPDX-License-Identifier: Apache-2.0
"""run.py FILE_test.py: runs the tests of a file; ends with 77 and a reason if this machine cannot."""
import importlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest


def preload():
    """Starts again with the runtime of a sanitizer, which must come before the program's libraries."""
    runtimes = {'address': 'libasan.so', 'thread': 'libtsan.so'}
    names = [file for kind, file in runtimes.items() if kind in os.environ.get('FUSEBOX_SANITIZE', '')]
    if not names or 'LD_PRELOAD' in os.environ:
        return
    paths = [subprocess.run(['gcc', f'-print-file-name={name}'], check=True, capture_output=True, text=True).stdout.strip()
             for name in [*names, 'libstdc++.so']]
    environment = {**os.environ, 'LD_PRELOAD': ' '.join(paths),
                   'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':detect_leaks=0'}  # the interpreter leaks
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def main(file):
    if importlib.util.find_spec('numpy') is None:
        print('SKIP: this Python has no numpy; ./dev setup installs python3-numpy')
        return 77
    preload()
    suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(pathlib.Path(file).stem))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    for test, why in result.skipped:
        print(f'SKIP: {test}: {why}')
    if result.wasSuccessful() and len(result.skipped) == result.testsRun:
        return 77
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
