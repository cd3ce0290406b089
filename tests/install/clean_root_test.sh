#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clean_root_test.sh SUITE [DIR]: builds the Debian packages of a release (bookworm, trixie) in a clean root, as ./dev package does,
# into build/packages/SUITE; then installs, uses and purges them in another clean root. With DIR: tests the packages there. Sources
# and keys are those of this machine. Needs root, mmdebstrap, git and the network.
set -eu
suite=$1
cd "$(dirname "$0")/../.."
. cmake/setup.sh
die() { echo "clean_root_test: $*" >&2; exit 2; }
out=$PWD/build/packages/$suite
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source_of "$suite" >"$work/source" || exit 2
git -c safe.directory="$PWD" ls-files -z | tar --null --no-recursion -T - -cf "$work/source.tar"

# in_root HOOK...: a clean root with this tree in /src, in which the hooks run, and which is then removed.
in_root() {
  mmdebstrap --mode=root --variant=apt --format=null --customize-hook='mkdir -p "$1/src" "$1/debs" "$1/root/.cache/ccache"' \
    --customize-hook="tar-in $work/source.tar /src" "$@" "$suite" - <"$work/source"
}
run='chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 FUSEBOX_PEERS=off'

if [ $# -lt 2 ]; then
  cache=$PWD/build/packages/ccache-$suite  # compiled files, for the next time
  rm -rf "$out"
  mkdir -p "$out" "$cache"
  # What was compiled is kept although the rest may fail.
  in_root --customize-hook="sync-in $cache /root/.cache/ccache" --customize-hook="$run /src/dev package || touch \"\$1/failed\"" \
    --customize-hook="sync-out /root/.cache/ccache $cache" --customize-hook='[ ! -e "$1/failed" ]' \
    --customize-hook="sync-out /src/build/release/packages $out"
fi
packages=${2:-$out}
for deb in "$packages"/*.deb; do
  printf '%s\t%s\t%s\n' "$suite" "$(dpkg-deb -f "$deb" Package)" "$(dpkg-deb -f "$deb" Depends)"
done >"$work/depends"
in_root --customize-hook="sync-in $packages /debs" --customize-hook="$run sh /src/tests/install/packages_in_root.sh"
grep "^$suite	" tests/install/depends.tsv | diff - "$work/depends" ||
  { echo "tests/install/depends.tsv: the rows of $suite are not those of the packages, which are marked >; correct them"; exit 1; }
