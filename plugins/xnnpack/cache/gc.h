// SPDX-License-Identifier: Apache-2.0
// What a store may lose: entries that a newer fingerprint replaced, files that nobody has used for longest
// when the store is over its size, files of dead processes, leftovers of files that are gone.
#pragma once

#include <set>

#include "plugins/xnnpack/cache/segment_write.h"

namespace fusebox::cache {

struct StoreDirs;

struct GcOptions {
  uint64_t max_bytes = 0;     // 0: no limit
  std::set<Digest> in_use{};  // ids of segments that stay whatever their age
  Digest newest{};            // id of the segment whose fingerprints hold; zero: by time
};

struct GcReport {
  uint64_t removed_files = 0;
  uint64_t bytes = 0;  // that stay
};

// The caller holds the store's lock. A file that is unlinked stays valid for those who have it mapped.
GcReport Collect(const StoreDirs& dirs, const GcOptions& options);

}  // namespace fusebox::cache
