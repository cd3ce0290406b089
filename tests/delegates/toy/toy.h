// SPDX-License-Identifier: Apache-2.0
// A delegate for ADD and MUL of f32 tensors of equal shape, with injectable faults. Options: {"lie": WHERE};
// {"join": OP} accepts that op only together with others; {"reshape": true} supports other dims; {"level"}
// and {"version"} are part of the key of compiled partitions; {"border_ns"} and {"byte_ns"} are what a border
// costs. Attributes "toy_ns" and "kernel_ns" of a node are its estimates. A plugin library, also linked into
// tests under the name below.
#pragma once

#include <atomic>

#include "fusebox/abi/plugin.h"

extern "C" const fbx_entry fusebox_toy_entry_v1;

namespace toy {

struct Counts {
  std::atomic<int> delegates = 0, sessions = 0, partitions = 0;  // alive
  std::atomic<int> compiled = 0, finished = 0, reshaped = 0, prepared = 0, invoked = 0;
  std::atomic<int> translated = 0, found = 0;  // programs of partitions: compiled, or in a store
  std::atomic<int> session_runs = 0;           // of all partitions, of the session that ran last
  std::atomic<int> packed = 0;                 // packed by the kernel of test.packed_add
};
extern Counts counts;

}  // namespace toy
