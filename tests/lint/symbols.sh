#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# symbols.sh PLUGIN_DIR: every plugin below it exports fusebox_entry_v1 and nothing else, and executes no CPUID when it is
# loaded, which takes 0.2 ms in a virtual machine.
set -u
count=0 failed=0
for library in "$1"/*/*.so "$1"/*/*/*.so; do
  [ -f "$library" ] || continue
  count=$((count + 1))
  exported=$(nm -D --defined-only "$library" | awk '{ print $NF }' | tr '\n' ' ')
  if [ "$exported" != 'fusebox_entry_v1 ' ]; then
    echo "$library exports: ${exported:-nothing}"
    failed=1
  fi
  if nm "$library" 2>/dev/null | grep -q __cpu_indicator_init; then
    echo "$library contains __builtin_cpu_supports: use FUSEBOX_CPU_HAS"
    failed=1
  fi
done
echo "$count plugins"
[ $count -gt 0 ] && [ $failed = 0 ]
