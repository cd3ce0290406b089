#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tflite_node.sh BUILD CXX: builds the addon of tfjs-tflite-node against our libtensorflowlite_c.so and runs its specs.
# Exits with 77 if something that it needs is missing, and says what.
set -eu
build=$1 cxx=$2
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "SKIP: $1"; exit 77; }
[ -n "${FUSEBOX_PEER_DIR:-}" ] || skip "FUSEBOX_PEER_DIR is not set"
package=$FUSEBOX_PEER_DIR/node_modules/tfjs-tflite-node
[ -d "$package" ] || skip "$package is missing"
[ -f /usr/include/node/node_api.h ] || skip "the headers of Node.js are not installed (libnode-dev)"
models=${FUSEBOX_MODELS:-}
[ -d "$models" ] || skip "FUSEBOX_MODELS has no models to stand in for the package's test data"
find_model() { find "$models" -name "$1" | head -n 1; }
bytes=$(find_model mobilenet_v2_1.0_224_quantized_1_default_1.tflite)
floats=$(find_model mobilenet_v1_0.25_224_1_metadata_1.tflite)
[ -n "$bytes" ] && [ -n "$floats" ] || skip "FUSEBOX_MODELS has no MobileNets"
case $(uname -m) in aarch64) cpu=linux_arm64 ;; *) cpu=linux_amd64 ;; esac

work=$build/tests/tflite_node
rm -rf "$work"
mkdir -p "$work/build/Release" "$work/test_data"
cp -r "$package/dist" "$package/package.json" "$work"
ln -s "$bytes" "$work/test_data/mobilenet_v2_1.0_224_inat_bird_quant.tflite"
ln -s "$floats" "$work/test_data/teachable_machine_float.tflite"
ln -s "$FUSEBOX_PEER_DIR/node_modules" "$work/node_modules"
"$cxx" -O1 -shared -fPIC -std=c++17 -DNAPI_CPP_EXCEPTIONS -DNODE_GYP_MODULE_NAME=node_tflite_binding \
  -I/usr/include/node -I"$FUSEBOX_PEER_DIR/node_modules/node-addon-api" -I"$package/cc_deps/include" \
  "$package/binding/node_tflite_binding.cc" -o "$work/build/Release/node_tflite_binding.node" \
  -L"$build/lib/fusebox/tflite" -ltensorflowlite_c "$package/cc_deps/$cpu/libexternal_delegate_obj.so"
cd "$work"
LD_LIBRARY_PATH=$build/lib/fusebox/tflite:$package/cc_deps/$cpu node "$here/tflite_node_specs.js" dist/index_test.js
