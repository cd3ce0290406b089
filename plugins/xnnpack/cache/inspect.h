// SPDX-License-Identifier: Apache-2.0
// A store as people look at it: what lies there, in whatever state, without packing or using any of it; and
// what they may have done to it. Paths are as Options has them, but for ":memory".
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
    kUnverified,  // blobs are checked at their first use
    kVerified,    // they were, since this machine was started
    kBad,
    kUnusable,  // for here: a later format, another store's, not to be trusted
  };
  std::string id;    // its name, without suffix where it is a segment's
  std::string name;  // in StoreDirs::segments
  State state = State::kBad;
  Note why;  // of the last two
  uint64_t bytes = 0;
  int64_t used_s = 0;                // 0: not known
  std::shared_ptr<Segment> segment;  // null where it cannot be read
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

// None: `why`, whose code is "missing" where there is nothing at this path, "no-cache" where it is something
// else, or that of what stands in the way. Nothing is written.
std::optional<StoreView> Inspect(const std::string& path, Note& why);

// The same after reading all blobs. What is right is recorded, what is bad is put aside, where the store can
// be written.
std::optional<StoreView> VerifyAll(const std::string& path, std::vector<Removed>& put_aside, Note& why);

// Collects garbage as a build does. `why` is set, and false returned, where the store is none or cannot be
// written.
bool CollectGarbage(const std::string& path, uint64_t max_bytes, std::vector<Removed>& removed, Note& why);

// Removes the segments of these ids; of an unknown one (code "no-segment"), none at all.
bool RemoveSegments(const std::string& path, const std::vector<std::string>& ids,
                    std::vector<Removed>& removed, Note& why);
// Removes all files that a store makes, and its directories where nothing else is in them.
bool RemoveStore(const std::string& path, std::vector<Removed>& removed, Note& why);

}  // namespace fusebox::cache
