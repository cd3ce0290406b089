// SPDX-License-Identifier: Apache-2.0
// A segment in the making: blobs that are in a file already or still in memory, then index, superblock and
// footer.
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

// A finished build on its way to the disk.
struct Build {
  TempFile temp;
  uint64_t used = kFirstBlob;  // end of the blobs in the file
  bool staged = false;         // the bytes are not in the file yet
  std::vector<Entry> entries;
  std::vector<std::shared_ptr<const void>> owners;  // keep the entries' bytes
  std::shared_ptr<const void> lock;                 // Store::LockBuild; ends once all this is on the disk
};

struct Stamp {
  Digest secret;
  uint64_t generation = 0;
  std::string writer;
};

// Writes the entries' bytes, from build.used on.
bool WriteStaged(Build& build, Note& why);
// Copies what `keep` says of an older segment, blobs that do not match their digest excepted.
bool AppendOld(Build& build, const Segment& old, const std::function<bool(const Record&)>& keep, Note& why);
// Sorts the entries, writes all the rest and waits for the disk. The file still has no name.
bool Finish(Build& build, const Stamp& stamp, Digest& id, Note& why);

}  // namespace fusebox::cache
