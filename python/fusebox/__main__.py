# SPDX-License-Identifier: Apache-2.0
"""`python3 -m fusebox` is the program `fusebox`."""
import os
import sys

from .errors import Error
from .tools import program


def main() -> None:
    try:
        path = program()
    except Error as error:
        print(f'fusebox: {error}', file=sys.stderr)
        sys.exit(3)
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == '__main__':
    main()
