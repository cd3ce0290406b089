#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh BUILD: writes a SavedModel with a Keras LSTM, converts it with and without fusion, runs both files in the sample
# host app and compares them. BUILD contains bin/write_models and an installed prefix (`./dev demo` creates both).
# Exit code 0, last line "demo: ok": fused, and the files differ by at most 1e-5.
set -eu
[ $# -eq 1 ] || { echo "usage: demo.sh BUILD" >&2; exit 2; }
build=$(cd "$1" && pwd)
samples=$(cd "$(dirname "$0")" && pwd)
prefix=$build/prefix work=$build/demo
plugins=$(echo "$prefix"/lib*/fusebox/plugins "$prefix"/lib/*/fusebox/plugins | tr ' ' '\n' | while read -r folder; do
  [ ! -d "$folder" ] || echo "$folder"; done | head -n 1)
fusebox=$prefix/bin/fusebox
host_app=$work/host_app/host_app
for need in "$build/bin/write_models" "$fusebox" "$plugins"; do
  [ -e "$need" ] || { echo "demo: $need is missing; ./dev demo builds and installs it" >&2; exit 2; }
done
mkdir -p "$work"

fail() { echo "demo: $*" >&2; exit 1; }
title() { printf '\n== %s\n' "$*"; }

# quietly NAME COMMAND...: prints the output only if the command fails.
quietly() {
  log=$work/$1.log; shift
  "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "failed: $*"; }
}

# Builds the host app against the installed prefix, like a third party.
title "host_app, built with the installed library"
[ -f "$work/host_app/CMakeCache.txt" ] ||
  quietly configure cmake -G Ninja -S "$samples/host_app" -B "$work/host_app" -DCMAKE_PREFIX_PATH="$prefix"
quietly build cmake --build "$work/host_app"
echo "$host_app"

title "a SavedModel with a Keras LSTM"
"$build/bin/write_models" "$work/models" --model keras_lstm --seed 1
model=$work/models/keras_lstm

title "converted: site | rule | plugin | result, and ops before -> after"
"$fusebox" convert "$model" -o "$work/fused.tflite" --batch 1 --verify strict --explain \
  --report "$work/report.json" --plugin "$plugins"

title "converted again, with the composite's own body"
"$fusebox" convert "$model" -o "$work/unfused.tflite" --batch 1 --composites inline --plugin "$plugins"
"$fusebox" inspect "$work/unfused.tflite" --json | python3 -c '
import json, sys
print(", ".join(f"{op} {count}" for op, count in json.load(sys.stdin)["ops"].items()))'

for file in fused unfused; do
  title "host_app $file.tflite"
  "$host_app" "$work/$file.tflite" --plugin "$plugins" --seed 1 --runs 200 >"$work/$file.txt" || fail "host_app failed"
  cat "$work/$file.txt"
done

title "fused against unfused"
"$fusebox" compare "$work/fused.tflite" "$work/unfused.tflite" --runs 10 --atol 1e-5 --rtol 0 --plugin "$plugins" ||
  fail "the fused file and the unfused one differ by more than 1e-5"
for file in fused unfused; do printf '%-8s' "$file"; grep '^latency' "$work/$file.txt"; done
python3 - "$work/report.json" <<'P' || fail "nothing was fused"
import json, sys
report = json.load(open(sys.argv[1]))
sites = report['sites']
fused = [site for site in sites if site['fused']]
print(f'{len(fused)} of {len(sites)} composites fused,', 'ops before -> after:',
      sum(report['ops_before'].values()), '->', sum(report['ops_after'].values()))
sys.exit(0 if fused else 1)
P
echo "demo: ok"
