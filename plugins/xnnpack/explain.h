// SPDX-License-Identifier: Apache-2.0
// Why the weights of a graph are found in a store, or not. Nothing is packed and nothing is written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fusebox/abi/ext/cache.h>
#include <fusebox/delegate.hpp>

namespace fusebox::xnnpack {

struct WeightReport {
  std::string location, op;
  std::string identity;  // empty where no cache is asked
  std::string recipe;    // for people
  fbx_cache_kind kind = FBX_CACHE_PRIVATE;
  bool found = false;
  uint64_t bytes = 0, packed_bytes = 0;
  std::string segment;    // where it is found
  std::string code, why;  // why it is not
};

// One report per constant that a node's op packs. Throws Reject where the graph holds a node that is not for
// XNNPACK.
std::vector<WeightReport> ExplainWeights(const std::string& path, const Graph& graph);

}  // namespace fusebox::xnnpack
