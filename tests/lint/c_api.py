# SPDX-License-Identifier: Apache-2.0
"""c_api.py ROOT: the version maps of the libraries list each function of their headers, and nothing else."""
import pathlib
import re
import sys

PAIRS = {
    ("sdk/include/fusebox/c.h", "sdk/include/fusebox/c_file.h"): "host/c/libfusebox.map",
    ("sdk/include/fusebox/c_convert.h",): "converter/c/libfusebox-convert.map",
    ("sdk/include/fusebox/c_models.h",): "models/c/libfusebox-models.map",
}


def main(root):
    wrong = 0
    for headers, script in PAIRS.items():
        text = "".join((root / header).read_text() for header in headers)
        declared = set(re.findall(r"FUSEBOX_API [^;(]*?(\w+)\(", text))
        exported = set(re.findall(r"^    (fusebox_\w+);", (root / script).read_text(), re.M))
        for name in sorted(declared ^ exported):
            print(f"{script}: {name} {'is missing' if name in declared else 'is not in ' + headers[0]}")
            wrong += 1
        if not declared:
            print(f"{headers[0]}: no function found")
            wrong += 1
    return 1 if wrong else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
