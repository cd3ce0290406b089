#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# twins.sh ARM64_BUILD X86_64_BUILD: both builds convert the same models to the same bytes, and share a weight cache in
# which each finds its own entries only. FUSEBOX_MODELS adds real models. Prints what differs.
set -eu
arm=$1 x86=$2
skip() { echo "SKIP: $*"; exit 77; }
[ -x "$x86/bin/fusebox" ] && [ -x "$x86/bin/write_models" ] || skip "no x86-64 build in $x86; ./dev build makes it"
"$arm/bin/fusebox" --version >/dev/null 2>&1 || skip "this system cannot start arm64 programs (binfmt_misc)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "twins: $*"; failed=1; }
on_arm() { FUSEBOX_PLUGIN_PATH="$arm/plugins" "$arm/bin/fusebox" "$@"; }
on_x86() { FUSEBOX_PLUGIN_PATH="$x86/plugins" "$x86/bin/fusebox" "$@"; }

# A refusal is a result as well: the same text on both.
convert_on_both() { # NAME MODEL [OPTION...]
  name=$1; shift
  on_x86 convert "$@" -o "$work/x86.tflite" >"$work/x86.txt" 2>&1 || true
  on_arm convert "$@" -o "$work/arm.tflite" >"$work/arm.txt" 2>&1 || true
  if [ ! -e "$work/x86.tflite" ] && [ ! -e "$work/arm.tflite" ]; then
    refused=$((refused + 1))
  elif cmp -s "$work/x86.tflite" "$work/arm.tflite"; then
    same=$((same + 1))
  else
    fail "$name: other bytes: $(tail -n 1 "$work/x86.txt") | $(tail -n 1 "$work/arm.txt")"
  fi
  rm -f "$work/x86.tflite" "$work/arm.tflite"
}

same=0 refused=0
"$x86/bin/write_models" "$work/models" --seed 1 >/dev/null
for model in "$work"/models/*; do
  for quantize in none dynamic float16; do
    convert_on_both "${model##*/} $quantize" "$model" --quantize "$quantize"
  done
done
if [ -n "${FUSEBOX_MODELS:-}" ]; then
  find "$FUSEBOX_MODELS/savedmodel" -name saved_model.pb -size -2000k | sort >"$work/list"
  find "$FUSEBOX_MODELS/keras" \( -name '*.keras' -o -name '*.h5' \) -size -1000k | sort >>"$work/list"
  while read -r file; do
    case $file in *.pb) file=${file%/*} ;; esac
    convert_on_both "${file#"$FUSEBOX_MODELS"/}" "$file"
  done <"$work/list"
fi
echo "twins: $same models converted to the same bytes, $refused refused on both"
[ "$same" -gt 20 ] || fail "too few models were converted"

# hits on_arm|on_x86: "found missing" weights of a start.
hits() {
  "$1" cache doctor "$work/net.tflite" --weight-cache "$work/cache/" --json >"$work/doctor.json" || true
  python3 -c 'import json, sys
kept = json.load(open(sys.argv[1]))["classes"]["cached"]
print(kept["found"], kept["missing"])' "$work/doctor.json"
}
expect() { # WHAT WANTED GOT
  [ "$2" = "$3" ] || fail "$1: wanted '$2' weights found and missing, got '$3'"
}
on_x86 convert "$work/models/conv_classifier" --batch 1 -o "$work/net.tflite" >/dev/null
# Which weights XNNPACK packs depends on the CPU. With an empty cache all are missing.
packed_on_x86=$(hits on_x86) packed_on_arm=$(hits on_arm)
none() { if [ "$1" = on_x86 ]; then echo "$packed_on_x86"; else echo "$packed_on_arm"; fi; }
all() { none "$1" | awk '{print $2, $1}'; }
case "$packed_on_x86/$packed_on_arm" in *"0 0"*) fail "no weight of the model is kept" ;; esac
for first in on_x86 on_arm; do
  rm -rf "$work/cache"
  [ $first = on_x86 ] && second=on_arm || second=on_x86
  $first cache build "$work/net.tflite" --weight-cache "$work/cache/" >/dev/null || fail "$first: cannot pack"
  expect "$first after itself" "$(all $first)" "$(hits $first)"
  expect "$second after $first" "$(none $second)" "$(hits $second)"
  $second cache build "$work/net.tflite" --weight-cache "$work/cache/" >/dev/null || fail "$second: cannot pack"
  expect "$second after both" "$(all $second)" "$(hits $second)"
  expect "$first after both" "$(all $first)" "$(hits $first)"
  on_arm cache verify "$work/cache/" >/dev/null || fail "$first: the cache is damaged"
done
[ $failed = 1 ] || echo "twins: a cache serves both, each with its own weights"
exit $failed
