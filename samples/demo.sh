#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh BUILD: writes a SavedModel with a Keras LSTM, converts it with and without fusion, runs both files in the sample
# host app and compares them. BUILD/prefix is an installation (`./dev demo` makes it); the files are left in BUILD/demo.
# Exit code 0, last line "demo: ok": fused, and the files differ by at most 1e-5.
set -eu
[ $# -eq 1 ] || { echo "usage: demo.sh BUILD" >&2; exit 2; }
build=$(cd "$1" && pwd)
samples=$(cd "$(dirname "$0")" && pwd)
prefix=$build/prefix work=$build/demo
[ -x "$prefix/bin/fusebox" ] || { echo "demo: no installation in $prefix; ./dev demo makes it" >&2; exit 2; }
mkdir -p "$work"
cd "$work"
PATH=$prefix/bin:$PATH
unset FUSEBOX_PLUGIN_PATH

fail() { echo "demo: $*" >&2; exit 1; }
step() { printf '\n%s\n' "$*"; }

# quietly NAME COMMAND...: prints the output only if the command fails.
quietly() {
  log=$1.log; shift
  "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "failed: $*"; }
}

step "A SavedModel with a Keras LSTM, as TensorFlow writes it (a loop over 28 rows of an image):"
quietly models write_models models --model keras_lstm --seed 1
echo "  build/release/demo/models/keras_lstm"

step "fusebox convert: plugin fusebox.rnn replaces the loop by one op, which is verified against the loop"
fusebox convert models/keras_lstm -o fused.tflite --batch 1 --verify strict --report report.json | fold -s -w 98 | sed 's/^/  /'
step "fusebox convert --composites inline: the same model, with the loop"
fusebox convert models/keras_lstm -o loop.tflite --batch 1 --composites inline | fold -s -w 98 | sed 's/^/  /'

# Built against the installation, like a third party's program.
[ -f host_app/CMakeCache.txt ] ||
  quietly configure cmake -G Ninja -S "$samples/host_app" -B host_app -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
quietly build cmake --build host_app
for file in fused loop; do
  step "host_app $file.tflite: a C++ program of 160 lines, linked with libfusebox"
  host_app/host_app $file.tflite --runs 500 | tee $file.txt
done

step "fusebox compare: both files on the same inputs"
fusebox compare fused.tflite loop.tflite --runs 10 --atol 1e-5 --rtol 0 >compare.txt || { cat compare.txt; fail "they differ"; }
fold -s -w 98 compare.txt | sed 's/^/  /'

step "Time of a run:"
python3 - report.json <<'P' || fail "nothing was fused"
import json, re, sys
times = {name: float(re.search(r'median ([\d.]+) us', open(f'{name}.txt').read())[1]) for name in ('fused', 'loop')}
for name, time in times.items():
    ratio = f'  {times["loop"] / time:.1f} times as fast' if name == 'fused' else ''
    print(f'  {name:6}{time:8.1f} us  {"#" * max(1, round(50 * time / max(times.values())))}{ratio}')
sys.exit(0 if any(site['fused'] for site in json.load(open(sys.argv[1]))['sites']) else 1)
P
printf '\nTo see more: fusebox inspect %s --html fused.html\n' "build/release/demo/fused.tflite"
echo "demo: ok"
