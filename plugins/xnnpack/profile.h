// SPDX-License-Identifier: Apache-2.0
// The times of XNNPACK's operators and of cache look-ups, as spans of fusebox.profile/1.
#pragma once

#include <fusebox/abi/ext/profile.h>
#include <fusebox/abi/host.h>
#include <xnnpack.h>

#include <cstdint>

namespace fusebox::xnnpack {

// XNN_FLAG_BASIC_PROFILING in a session with a profile, else 0.
uint32_t ProfilingFlag(const fbx_host* host);

// Adds a span "INDEX NAME" for each operator that the last invoke ran. XNNPACK measures whole microseconds.
void AddOperatorTimes(const fbx_host* host, xnn_runtime_t runtime);

// A look-up of packed weights in the cache: "weight cache hit" or "weight cache miss". Ends with End.
class LookUpSpan {
 public:
  explicit LookUpSpan(const fbx_host* host);  // null: not traced
  // Bytes of the packed weights, or of the weights that are to be packed.
  void End(bool found, uint64_t bytes);

 private:
  const fbx_host* const host_;
  const fbx_profile* const profile_;  // null: not traced
  const uint64_t start_;
};

}  // namespace fusebox::xnnpack
