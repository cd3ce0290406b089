#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sample_test.sh BUILD SAMPLE CXX SANITIZE: installs BUILD, moves the prefix, and builds SAMPLE with it and nothing else.
set -eu
build=$1 sample=$2 cxx=$3 flags=${4:+-fsanitize=$4}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/before" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/before" "$work/after"
if grep -rlF -e "$build" -e "$work" "$work/after/lib/cmake/fusebox" "$work/after/include"; then
  echo "these installed files name a folder of the build"
  exit 1
fi
# With plugins/common and plugins/math beside it, if it is a plugin of this tree.
mkdir -p "$work/copy/plugins"
cp -r "$sample" "$work/copy/plugins/${sample##*/}"
case $sample in */plugins/nn) cp -r "${sample%/*}/common" "${sample%/*}/math" "$work/copy/plugins/" ;; esac
cmake -G Ninja -S "$work/copy/plugins/${sample##*/}" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/after" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror $flags" -DCMAKE_C_FLAGS="$flags"
cmake --build "$work/build"

case ${sample##*/} in
  host_app) "$work/build/host_app" 2>"$work/usage" && status=0 || status=$?
    [ "$status" = 2 ] || { echo "host_app with no model: exit $status, not 2"; cat "$work/usage"; exit 1; }
    "$build/bin/write_models" "$work/models" --model conv_classifier >/dev/null
    "$work/after/bin/fusebox" convert "$work/models/conv_classifier" -o "$work/net.tflite" --batch 1
    env -u FUSEBOX_PLUGIN_PATH "$work/build/host_app" "$work/net.tflite" >"$work/said"
    grep "xnnpack (partition 0)" "$work/said" ||
      { echo "host_app does not find the plugins of the prefix that it was built against:"; cat "$work/said"; exit 1; } ;;
  embed) "$build/tests/write_embed_models" "$work"
    # The programs need the library alone.
    rm -r "$work/after/bin" "$work/after/libexec" "$work/after/include"
    find "$work/after/lib" -mindepth 1 ! -type d ! -name 'libfusebox.so*' -delete
    for program in embed_c11 embed_cpp17 embed_cpp20; do
      "$work/build/$program" "$work/weights.tflite" "$work/endless.tflite" >"$work/said" || { cat "$work/said"; exit 1; }
      grep -q "^64 values in, 256 bytes out, first 0$" "$work/said" && grep -q "^node 0 ADD on .*: .* us$" "$work/said" &&
        grep -q "^cancelled$" "$work/said" || { echo "$program prints:"; cat "$work/said"; exit 1; }
      "$work/build/$program" "$work/nowhere" 2>"$work/said" && status=0 || status=$?
      [ "$status" = 2 ] || { echo "$program with no model: exit $status, not 2"; exit 1; }
    done ;;
  *) sh "${0%/*}/../lint/symbols.sh" "$work/build/plugins" ;;
esac
