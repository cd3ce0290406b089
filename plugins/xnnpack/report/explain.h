// SPDX-License-Identifier: Apache-2.0
// Explains cache hits and misses for the weights of a graph. Packs and writes nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fusebox/abi/ext/cache.h>
#include <fusebox/delegate.hpp>

namespace fusebox::xnnpack {

using namespace sdk;

struct WeightReport {
  std::string location, op;
  std::string identity;  // empty: not cached
  std::string recipe;    // for display
  fbx_cache_kind kind = FBX_CACHE_PRIVATE;
  bool found = false;
  uint64_t bytes = 0;
  uint64_t packed_bytes = 0;
  std::string segment;    // if found
  std::string code, why;  // cause of a miss
};

// One report per packed constant of a node. Throws Reject if a node is not supported by XNNPACK.
std::vector<WeightReport> ExplainWeights(const std::string& path, const Graph& graph);

}  // namespace fusebox::xnnpack
