// SPDX-License-Identifier: Apache-2.0
// Writes a segment: blobs (in the file already, or in memory), then index, superblock and footer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plugins/xnnpack/cache/files.h"
#include "plugins/xnnpack/cache/segment.h"

namespace fusebox::cache {

struct Entry {
  Record record;
  std::string note;
  std::span<const std::byte> bytes;
};

// A finished build, to be written.
struct Build {
  TempFile temp;
  uint64_t used = kFirstBlob;  // end of the blobs in the file
  bool staged = false;         // the bytes are not in the file yet
  std::vector<Entry> entries;
  std::vector<std::shared_ptr<const void>> owners;  // own the entries' bytes
  std::shared_ptr<const void> lock;                 // Store::LockBuild; released when everything is on disk
};

struct Stamp {
  Digest secret;
  uint64_t generation = 0;
  std::string writer;
};

// Writes the entries' bytes, from build.used on.
bool WriteStaged(Build& build, Note& why);
// Copies the records of an older segment that `keep` selects, except blobs with a wrong digest.
bool AppendOld(Build& build, const Segment& old, const std::function<bool(const Record&)>& keep, Note& why);
// Sorts the entries, writes the rest and syncs. The file is still unnamed.
bool Finish(Build& build, const Stamp& stamp, Digest& id, Note& why);

}  // namespace fusebox::cache
