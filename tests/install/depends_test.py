#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""depends_test.py SOURCE BUILD: the Depends in depends.tsv can be installed on the release that they are for: bookworm with the
packages of trixie beside it, or trixie. The lists are those of this machine's apt. The row of libfusebox0 for this machine's
release names the packages that its built library and plugins need. Exit 77: this machine has no lists."""
import glob
import os
import re
import subprocess
import sys
import tempfile

SUITES = {"bookworm": ("bookworm", "trixie"), "trixie": ("trixie",)}


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def packages_of(suite):
    """Versions by package, and None for names that a package provides."""
    files = run("apt-get", "indextargets", "--format", "$(CODENAME) $(FILENAME)", "Created-By: Packages").splitlines()
    found = {}
    for line in files:
        codename, file = line.split(" ", 1)
        if codename.split("-")[0] != suite:
            continue
        name = version = None
        for row in run("/usr/lib/apt/apt-helper", "cat-file", file).splitlines():
            key, _, value = row.partition(": ")
            if key == "Package":
                name = value
            elif key == "Version":
                found.setdefault(name, []).append(value)
            elif key == "Provides":
                for provided in re.findall(r"([a-z0-9][a-z0-9+.-]+)(?: \(= ([^)]+)\))?(?:,|$)", value):
                    found.setdefault(provided[0], []).append(provided[1] or None)
    return found


def satisfied(dependency, lists):
    for alternative in dependency.split("|"):
        name, operator, wanted = re.fullmatch(r"\s*([^\s(:]+)\S*\s*(?:\((\S+)\s+([^)]+)\))?\s*", alternative).groups()
        for version in (v for packages in lists for v in packages.get(name, ())):
            if wanted is None:
                return True
            if version and subprocess.run(["dpkg", "--compare-versions", version, operator, wanted]).returncode == 0:
                return True
    return False


def built(build):
    """Names of the packages that the built library and plugins need."""
    files = glob.glob(build + "/lib/libfusebox.so.?") + glob.glob(build + "/plugins/fusebox.*/*/*.so")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/debian")
        with open(folder + "/debian/control", "w", encoding="utf-8") as control:
            control.write("Source: fusebox\n\nPackage: fusebox\nArchitecture: any\n")
        text = run("dpkg-shlibdeps", "-O", "--ignore-missing-info", *["-e" + os.path.realpath(f) for f in files], cwd=folder)
    return set(re.findall(r"([a-z0-9][a-z0-9+.-]+)(?: \([^)]*\))?(?:, |$)", text.strip().removeprefix("shlibs:Depends=")))


def main(source, build):
    with open(source + "/tests/install/depends.tsv", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    own = {package for _, package, _ in rows}
    bad, checked = [], 0
    for suite, needed in SUITES.items():
        lists = [packages_of(name) for name in needed]
        if not all(lists):
            print(f"skipped: {suite}: this machine has no package list of {needed}")
            continue
        for _, package, depends in (row for row in rows if row[0] == suite):
            checked += 1
            for dependency in depends.split(", "):
                if dependency.split(" ")[0] not in own and not satisfied(dependency, lists):
                    bad.append(f"{suite}: {package}: no package satisfies {dependency}")
    release = run("sh", "-c", ". cmake/setup.sh; debian_release", cwd=source).strip()
    suite = {"12": "bookworm", "13": "trixie"}.get(release)
    row = next((row[2] for row in rows if row[:2] == [suite, "libfusebox0"]), None)
    if row:
        listed = {dependency.split(" ")[0] for dependency in row.split(", ")}
        bad += [f"{suite}: libfusebox0 needs {name}, which its row lacks" for name in sorted(built(build) - listed)]
        bad += [f"{suite}: libfusebox0 does not need {name}" for name in sorted(listed - built(build))]
    print("\n".join(bad) or f"{checked} packages")
    return 1 if bad else 0 if checked else 77


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
