#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch.sh DIRECTORY: puts the implementations that the tests compare with into DIRECTORY, from npm, pinned by the lock
# file. No install script runs. Afterwards DIRECTORY holds libtensorflowlite_c.so, libonnxruntime.so and node_modules/.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

stamp=$(cksum <"$here/package-lock.json")
if [ "$(cat stamp 2>/dev/null)" = "$stamp" ]; then exit 0; fi
rm -f stamp

for tool in node npm; do
  command -v $tool >/dev/null || { echo "$tool is not installed" >&2; exit 1; }
done
case $(uname -m) in
  x86_64) tflite=linux_amd64 onnx=linux/x64 ;;
  aarch64) tflite=linux_arm64 onnx=linux/arm64 ;;
  *) echo "the peers have no library for $(uname -m)" >&2; exit 1 ;;
esac
cp "$here/package.json" "$here/package-lock.json" .
timeout 300 npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --loglevel=error
ln -sf "node_modules/tfjs-tflite-node/cc_deps/$tflite/libtensorflowlite_c.so" libtensorflowlite_c.so
ln -sf "node_modules/onnxruntime-node/bin/napi-v6/$onnx/libonnxruntime.so.1" libonnxruntime.so
for library in libtensorflowlite_c.so libonnxruntime.so; do
  [ -e $library ] || { echo "$library is not where this version was known to have it" >&2; exit 1; }
done
echo "$stamp" >stamp
