#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fetch.sh DIRECTORY: puts the implementations that the tests compare with into DIRECTORY, from npm, pinned by the lock
# file. No install script runs. Afterwards DIRECTORY holds libtensorflowlite_c.so and libonnxruntime.so of this machine's
# CPU, node_modules/, and a folder with these libraries for each CPU: x86_64/, aarch64/. litert.cjs and litert.wasm are
# today's LiteRT, which litert_run.js drives.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

stamp=$(cat "$here/package-lock.json" "$here/fetch.sh" | cksum)
if [ "$(cat stamp 2>/dev/null)" = "$stamp" ]; then exit 0; fi
rm -f stamp

for tool in node npm; do
  command -v $tool >/dev/null || { echo "$tool is not installed" >&2; exit 1; }
done
cp "$here/package.json" "$here/package-lock.json" .
timeout 300 npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --loglevel=error
libraries() { # CPU TFLITE ONNX
  mkdir -p "$1"
  ln -sf "../node_modules/tfjs-tflite-node/cc_deps/$2/libtensorflowlite_c.so" "$1"
  ln -sf "../node_modules/onnxruntime-node/bin/napi-v6/$3/libonnxruntime.so.1" "$1/libonnxruntime.so"
  ln -sfn ../node_modules ../litert.cjs ../litert.wasm "$1"
  for library in libtensorflowlite_c.so libonnxruntime.so; do
    [ -e "$1/$library" ] || { echo "$1/$library is not where this version was known to have it" >&2; exit 1; }
  done
}
libraries x86_64 linux_amd64 linux/x64
libraries aarch64 linux_arm64 linux/arm64
cpu=$(uname -m)
[ -d "$cpu" ] || { echo "the peers have no library for $cpu" >&2; exit 1; }
ln -sf "$cpu/libtensorflowlite_c.so" "$cpu/libonnxruntime.so" .

# The package declares its files as ES modules, but this one is a CommonJS module. "compat" is the build without relaxed
# SIMD: its results do not depend on the CPU.
litert=node_modules/@litertjs/core/wasm/litert_wasm_compat_internal
for suffix in js wasm; do
  [ -f "$litert.$suffix" ] || { echo "$litert.$suffix is not where this version was known to have it" >&2; exit 1; }
done
cp "$litert.js" litert.cjs
ln -sf "$litert.wasm" litert.wasm
echo "$stamp" >stamp
