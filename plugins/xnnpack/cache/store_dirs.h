// SPDX-License-Identifier: Apache-2.0
// Files of one store on disk. A directory store:   DIR/{secret,lock,segments/,models/,state/,tmp/}
// A single-file store:   FILE, and FILE.d/{secret,lock,models/,state/,tmp/}, which can be recreated
#pragma once

#include <memory>
#include <string>

#include "plugins/xnnpack/cache/files.h"
#include "plugins/xnnpack/cache/segment.h"

namespace fusebox::cache {

struct StoreDirs {
  std::string path;  // absolute: the directory, or the single file
  bool single_file = false;
  bool writable = false;
  std::string file;  // of a single-file store: its name in `segments`
  Fd side;           // holds secret and lock; none: missing and cannot be created
  Fd segments, models, state, tmp;
  Digest secret;

  // Returns null and sets `why` if it fails. `path`: as in Options. `write`: creates missing directories; on
  // failure the store is read-only and `why` is set.
  static std::unique_ptr<StoreDirs> Open(const std::string& path, bool write, Note& why);
  // Creates the secret of a writable store if missing. On failure the store becomes read-only.
  void EnsureSecret(Note& why);

  // Current names of segment files.
  std::vector<std::string> SegmentNames() const;

  // Returns whether the blobs of this file were verified since the last boot.
  bool Verified(const Digest& id, const ModelFile& file) const;
  void RecordVerified(const Digest& id, const ModelFile& file) const;
  // The last use is stored as a day.
  void Touch(const Digest& id) const;
  int64_t LastUsed(const Digest& id) const;  // seconds since 1970; 0: unknown

  // Renames the file to NAME.bad, so that it is built again.
  bool Quarantine(const std::string& name) const;

 private:
  bool OpenFile(Fd parent, const std::string& name, bool write, Note& why);
  bool OpenDirectories(bool write, Note& why);
};

inline constexpr const char* kSegmentSuffix = ".fbpk";
inline constexpr const char* kBadSuffix = ".bad";

// Returns the absolute path, with links of the parent resolved, or "" if it fails with `why`.
std::string Canonical(const std::string& path, Note& why);
// Returns $XDG_CACHE_HOME/fusebox or ~/.cache/fusebox, or "" if this user has no home directory.
std::string DefaultPath();
bool IsSingleFile(const std::string& path);
// Returns whether a damaged file was a segment: it begins like one, or FILE.d has a secret.
bool WasSegment(int directory, const std::string& file);

}  // namespace fusebox::cache
