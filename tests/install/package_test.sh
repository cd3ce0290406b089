#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# package_test.sh BUILD SOURCE CC SANITIZE: what cpack writes works from another folder, and the Debian packages from a root of
# their own.
set -eu
build=$1 source=$2 cc=$3 flags=${4:+-fsanitize=$4}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/tests/install/embed.sh"

cpack --config "$build/CPackConfig.cmake" -B "$work/packages" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
mkdir "$work/tar"
tar -xzf "$work"/packages/fusebox-*.tar.gz -C "$work/tar" --strip-components=1
"$build/bin/write_models" "$work/models" --model dense >/dev/null
"$work/tar/bin/fusebox" convert "$work/models/dense" -o "$work/dense.tflite" --batch 1
embed "$work/tar" "$work/dense.tflite"

command -v dpkg-deb >/dev/null || { echo 'SKIP: no dpkg-deb: Debian packages not tested'; exit 77; }
field() { dpkg-deb -f "$work"/packages/"$1"_*.deb "$2"; }
must() { # PACKAGE FIELD PATTERN
  field "$1" "$2" | grep -E "$3" >/dev/null || { echo "$1: $2: $(field "$1" "$2"), expected $3"; exit 1; }
}
must libfusebox0 Package '^libfusebox0$'
must libfusebox0 Architecture "^$(dpkg --print-architecture)$"
must libfusebox0 Depends 'libc6.*libpthreadpool0.*libre2.*libutf8proc.*libxnnpack'
must libfusebox0 Maintainer '@'
must libfusebox-dev Depends 'libfusebox0 \(= [0-9.]+-1~deb[0-9]*\)'
must libfusebox0 Description 'For Debian [0-9]+'
for package in libfusebox0 libfusebox-convert0 libfusebox-models0 libfusebox-dev fusebox python3-fusebox; do
  dpkg-deb -c "$work"/packages/${package}_*.deb | grep "\./usr/share/doc/$package/copyright" >/dev/null ||
    { echo "$package has no copyright file"; exit 1; }
done
dpkg-deb -c "$work"/packages/fusebox_*.deb | grep '\./usr/share/doc/fusebox/docs/run.md' >/dev/null
[ "$(stat -c %s "$work"/packages/libfusebox-dev_*.deb)" -lt 40000000 ] || { echo 'libfusebox-dev has debug information'; exit 1; }
must fusebox Depends 'libfusebox0 \(= '
! field libfusebox0 Depends | grep -E 'hdf5|protobuf|leveldb|zip' || { echo 'libfusebox0 needs libraries of the converter'; exit 1; }
must python3-fusebox Depends 'python3-numpy.*libfusebox0 \(= .*libfusebox-convert0 \(= '
for package in libfusebox0 fusebox python3-fusebox; do dpkg-deb -x "$work"/packages/${package}_*.deb "$work/root"; done
dpkg-deb -c "$work"/packages/libfusebox0_*.deb | grep -E '\./usr/lib/libfusebox\.so\.0 -> ' >/dev/null
! dpkg-deb -c "$work"/packages/libfusebox0_*.deb | grep -E '\.h$|\.a$|cpu\.so'
"$work/root/usr/bin/fusebox" convert "$work/models/dense" -o "$work/again.tflite" --batch 1
cmp "$work/dense.tflite" "$work/again.tflite"
"$work/root/usr/bin/fusebox" run "$work/again.tflite" | head -n 3
"$work/root/usr/bin/fusebox" plugin list | grep "$work/root/usr/lib/fusebox/plugins" >/dev/null
if /usr/bin/python3 -c 'import numpy' 2>/dev/null && [ -z "$flags" ]; then
  env -u FUSEBOX_PREFIX PYTHONPATH="$work/root/usr/lib/python3/dist-packages" /usr/bin/python3 -c '
import sys, fusebox
session = fusebox.Session(sys.argv[1])
session.invoke()
assert fusebox.program().startswith(sys.argv[2]), fusebox.program()' "$work/dense.tflite" "$work/root/usr"
fi
