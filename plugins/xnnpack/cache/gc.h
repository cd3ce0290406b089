// SPDX-License-Identifier: Apache-2.0
// Garbage collection: removes superseded entries, the least recently used files above the size limit, files
// of dead processes, and records of removed files.
#pragma once

#include <set>

#include "plugins/xnnpack/cache/segment_write.h"

namespace fusebox::cache {

struct StoreDirs;

struct GcOptions {
  uint64_t max_bytes = 0;     // 0: no limit
  std::set<Digest> in_use{};  // ids of segments that are always kept
  Digest newest{};            // id of the segment with the valid fingerprints; zero: the most recent
};

struct GcReport {
  uint64_t removed_files = 0;
  uint64_t bytes = 0;  // after collection
};

// Requires the store's lock. An unlinked file stays valid where it is mapped.
GcReport Collect(const StoreDirs& dirs, const GcOptions& options);

}  // namespace fusebox::cache
