// SPDX-License-Identifier: Apache-2.0
// Listing and maintenance of a store, without packing or using its weights. Paths as in Options, except
// ":memory".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/xnnpack/cache/segment.h"
#include "plugins/xnnpack/cache/store_dirs.h"

namespace fusebox::cache {

struct SegmentView {
  enum class State {
    kUnverified,  // blobs are checked on first use
    kVerified,    // blobs were checked since the last boot
    kBad,
    kUnusable,  // newer format, another store's segment, or untrusted
  };
  std::string id;    // file name; for segments without suffix
  std::string name;  // in StoreDirs::segments
  State state = State::kBad;
  Note why;  // for the last two states
  uint64_t bytes = 0;
  int64_t used_s = 0;                // 0: unknown
  std::shared_ptr<Segment> segment;  // null: unreadable
};

struct StoreView {
  std::unique_ptr<StoreDirs> dirs;
  std::vector<SegmentView> segments;  // by name
  std::string PathOf(const SegmentView& segment) const;
};

struct Removed {
  std::string path;
  uint64_t bytes = 0;
};

// Returns nothing and sets `why` if it fails: the code is "missing" if nothing exists at this path,
// "no-cache" if it is something else. Writes nothing.
std::optional<StoreView> Inspect(const std::string& path, Note& why);

// Same, after reading all blobs. If the store is writable, records verified segments and quarantines bad
// ones.
std::optional<StoreView> VerifyAll(const std::string& path, std::vector<Removed>& put_aside, Note& why);

// Collects garbage like a build. Returns false and sets `why` if it is not a store, or not writable.
bool CollectGarbage(const std::string& path, uint64_t max_bytes, std::vector<Removed>& removed, Note& why);

// Removes these segments; none if an id is unknown (code "no-segment").
bool RemoveSegments(const std::string& path, const std::vector<std::string>& ids,
                    std::vector<Removed>& removed, Note& why);
// Removes all files of a store, and its directories if they become empty.
bool RemoveStore(const std::string& path, std::vector<Removed>& removed, Note& why);

}  // namespace fusebox::cache
