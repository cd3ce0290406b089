#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exports_tflite.sh LIBRARY DROP_IN INCLUDE_DIR: both libraries export what the headers of TensorFlow Lite's C API
# declare, under the version VERS_1.0, and nothing else; the second has the soname of TensorFlow Lite's. With
# FUSEBOX_PEER_DIR, all functions of that one are among them.
set -eu
library=$1 drop_in=$2 include=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find "$include" -name '*.h' -exec cat {} + | tr '\n' ' ' | sed 's|/\*[^*]*\*/||g' |
  grep -oE 'TFL_CAPI_EXPORT [^;({]*TfLite[A-Za-z0-9]+ ?\(' | grep -oE 'TfLite[A-Za-z0-9]+ ?\($' | tr -d '( ' | sort -u >"$work/headers"
failed=0
for one in "$library" "$drop_in"; do
  nm -D --defined-only "$one" | awk '$2 != "A" { print $NF }' | sort >"$work/exported"
  sed 's/$/@@VERS_1.0/' "$work/headers" | diff -u - "$work/exported" || { echo "$one differs from the headers"; failed=1; }
done
readelf -d "$drop_in" | grep -q 'SONAME.*\[libtensorflowlite_c.so\]' || { echo "$drop_in: wrong soname"; failed=1; }
if [ -f "${FUSEBOX_PEER_DIR:-}/libtensorflowlite_c.so" ]; then
  nm -D --defined-only "$FUSEBOX_PEER_DIR/libtensorflowlite_c.so" | grep -oE ' TfLite[A-Za-z0-9]+@@VERS_1.0$' | tr -d ' ' | sort >"$work/stock"
  comm -23 "$work/stock" "$work/exported" | grep . && { echo "functions of TensorFlow Lite's library are missing"; failed=1; }
fi
echo "$(wc -l <"$work/headers") functions"
[ -s "$work/headers" ] && [ $failed = 0 ]
