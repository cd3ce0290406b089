#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# litert.sh BUILD PYTHON ops|samples|files: compares Fusebox with LiteRT on one file per op (litert_ops.py), on the models
# of write_models, and on the files of FUSEBOX_MODELS that stock TensorFlow Lite 2.9 cannot run (litert_sweep.py). Exits
# with 77 if something that it needs is missing, and prints what; FUSEBOX_PEERS=required makes this a failure, except for
# models.
set -eu
build=$1 python=$2 what=$3
here=$(cd "$(dirname "$0")" && pwd)
missing() {
  echo "SKIP: $1"
  if [ "${FUSEBOX_PEERS:-}" = required ]; then exit 1; fi
  exit 77
}
[ -n "${FUSEBOX_PEER_DIR:-}" ] || missing "FUSEBOX_PEER_DIR is not set"
[ -f "$FUSEBOX_PEER_DIR/litert.cjs" ] || missing "$FUSEBOX_PEER_DIR has no litert.cjs"
command -v node >/dev/null || missing "node is not installed"
"$python" -c 'import numpy' 2>/dev/null || missing "$python has no NumPy"
case $what in
  ops)
    command -v flatc >/dev/null || missing "flatc is not installed (flatbuffers-compiler)"
    exec "$python" "$here/litert_ops.py" "$build" "$FUSEBOX_PEER_DIR" "$here/../../docs/tensorflow-lite.md" ;;
  samples) exec "$python" "$here/litert_sweep.py" "$build" "$FUSEBOX_PEER_DIR" . --samples ;;
  files)
    [ -f "${FUSEBOX_MODELS:-}/STOCK.tsv" ] || { echo "SKIP: FUSEBOX_MODELS has no STOCK.tsv"; exit 77; }
    exec "$python" "$here/litert_sweep.py" "$build" "$FUSEBOX_PEER_DIR" "$FUSEBOX_MODELS" --not-in-stock ;;
esac
