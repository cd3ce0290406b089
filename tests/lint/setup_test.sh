#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup_test.sh ROOT: the trixie source that set-up derives from a machine's own, for each way of writing one.
set -eu
cd "$1"
etc=$(mktemp -d)
trap 'rm -rf "$etc"' EXIT
. cmake/setup.sh
failed=0

expect() { # WHAT WANTED GOT
  [ "$2" = "$3" ] || { printf '%s: wanted\n%s\ngot\n%s\n' "$1" "$2" "$3"; failed=1; }
}
fresh() { rm -rf "$etc"; mkdir -p "$etc/apt/sources.list.d" "$etc/apt/preferences.d"; }

fresh
cat >"$etc/apt/sources.list.d/debian.sources" <<'S'
# a comment
Types: deb deb-src
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: bookworm

Types: deb deb-src
# another
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN KEY-----
 .
 abc
S
expect 'deb822, inline key' 'Types: deb
URIs: http://mirror.example/debian
Suites: trixie
Components: main
Signed-By:
 -----BEGIN KEY-----
 .
 abc' "$(own_sources)"
expect 'deb822: release' 12 "$(debian_release)"
expect 'deb822: no one-line form' '' "$(own_list)"

fresh
cat >"$etc/apt/sources.list" <<'S'
deb http://mirror.example/security bookworm-security main
# deb http://off.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian  bookworm main contrib
S
expect 'one-line' 'deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian trixie main' "$(own_list)"
printf 'ID=debian\nVERSION_ID="13"\n' >"$etc/os-release"
expect 'a Debian 12 that calls itself 13 since its libc6 was upgraded' 12 "$(debian_release)"

fresh
printf 'ID=debian\nVERSION_ID="13"\n' >"$etc/os-release"
expect 'Debian 13' 13 "$(debian_release)"
echo 'deb [signed-by=/k.gpg] http://mirror.example/debian trixie main' >"$etc/apt/sources.list"
expect 'the source of another release' 'deb [signed-by=/k.gpg] http://mirror.example/debian bookworm main' "$(source_of bookworm)"
printf 'ID=fedora\nVERSION_ID="41"\n' >"$etc/os-release"
expect 'another distribution' '' "$(debian_release)"

# mmdebstrap reads its sources there, for the arm64 root.
fresh
eval "$(sed -n '/^quiet()/,/^}/p' dev)"
cd "$etc"
expect 'what a step of ./dev reads' 'deb line' "$(echo 'deb line' | { quiet step cat >said && cat build/log/step.log; })"
exit $failed
