#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exports.sh LIBRARY.so LIBRARY.a MAP HEADER...: the version script lists what the headers declare, both libraries define
# these functions and nothing else, and the shared one loads no library that a host does not need, and executes no CPUID
# when it is loaded, which takes 0.2 ms in a virtual machine.
set -eu
shared=$1 static=$2 map=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat "$@" | tr '\n' ' ' | grep -oE 'FUSEBOX_API[^;(]* \**fusebox_[a-z0-9_]+\(' | grep -oE 'fusebox_[a-z0-9_]+\($' | tr -d '(' | sort >"$work/header"
grep -oE '^ +fusebox_[a-z0-9_]+;' "$map" | tr -d ' ;' | sort >"$work/map"
nm -D --defined-only "$shared" | awk '$2 != "A" { print $NF }' >"$work/versioned"
sed 's/@@FUSEBOX_1\.[0-9]*$//' "$work/versioned" | sort >"$work/shared"
nm -g --defined-only "$static" | awk 'NF == 3 { print $NF }' | sort >"$work/static"

failed=0
for one in map shared static; do
  diff -u "$work/header" "$work/$one" || { echo "$one differs from $*"; failed=1; }
done
case $shared in
  *-convert*) other='' ;;
  *-models*) other=$(readelf -d "$shared" | grep NEEDED | grep -E 'hdf5|libzip' || true) ;;
  *) other=$(readelf -d "$shared" | grep NEEDED | grep -E 'hdf5|protobuf|leveldb|libzip|absl' || true) ;;
esac
[ -z "$other" ] || { echo "$shared loads libraries of the converter:"; echo "$other"; failed=1; }
if nm "$shared" | grep -q __cpu_indicator_init; then
  echo "$shared contains __builtin_cpu_supports: use CPU_FEATURE_ACTIVE"
  failed=1
fi
echo "$(wc -l <"$work/header") functions"
[ -s "$work/header" ] && [ $failed = 0 ]
