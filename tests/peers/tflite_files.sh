#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tflite_files.sh BUILD: runs the files of FUSEBOX_MODELS below 1 MB through stock's C library and through ours, in its
# place. Exits with 77 if something that it needs is missing, and says what.
set -eu
build=$1
skip() { echo "SKIP: $1"; exit 77; }
stock=${FUSEBOX_PEER_DIR:-}/libtensorflowlite_c.so
[ -f "$stock" ] || skip "FUSEBOX_PEER_DIR has no libtensorflowlite_c.so"
[ -d "${FUSEBOX_MODELS:-}" ] || skip "FUSEBOX_MODELS has no models"

# Pseudo-random inputs are indices out of range, or dims of a result: stock computes something.
known='simple_scatter_nd_op|single_gather_nd_with_const_params|transpose_conv[0-4]'
# rsqrt of negative values; scales that overflow; 0.0002 of the largest value.
known="$known|single_rsqrt_default_a8w8_recipe_quantized|conv_fc_mnist_srq_a8w8|partly_quantized_mnist|icassp_2022/nmp"
rows=$(find "$FUSEBOX_MODELS" -name '*.tflite' -size -1024k | grep -vE "($known)\.tflite" | sort |
  xargs "$build/bin/doors_sweep" "$build/lib/fusebox/tflite/libtensorflowlite_c.so" "$stock" || true)
echo "$rows" | grep -vE '	(same|close|neither|only ours)$'
echo "$rows" | grep -qE '^[0-9]+ same$' && ! echo "$rows" | grep -qE '^[0-9]+ (differs|only stock)$'
