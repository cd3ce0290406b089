// SPDX-License-Identifier: Apache-2.0
// A store in memory that counts, as a plugin linked into the tests.
#pragma once

#include <fusebox/abi/plugin.h>

#include <string>
#include <vector>

extern const fbx_entry kCountedStore;

struct StoreCounts {
  std::vector<std::string> packed;  // names of the recipes of misses, in order
  int found = 0;
  bool open = true;  // false: the store keeps nothing
};
extern StoreCounts store_counts;

void EmptyCountedStore();
