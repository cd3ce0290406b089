// SPDX-License-Identifier: Apache-2.0
// The places of one store on disk. A directory store:   DIR/{secret,lock,segments/,models/,state/,tmp/}
// A single-file store:   FILE, and beside it FILE.d/{secret,lock,models/,state/,tmp/}, which may be lost at
// no great cost
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
  Fd side;           // where secret and lock are; none when it is not there and cannot be made
  Fd segments, models, state, tmp;
  Digest secret;

  // `path` as in Options, absolute or relative. Null on failure, with `why`. With `write`, missing
  // directories are made; if that fails, the store is not writable and `why` is set too.
  static std::unique_ptr<StoreDirs> Open(const std::string& path, bool write, Note& why);
  // Makes the secret of a writable store if it has none. If that fails, the store is not writable any more.
  void EnsureSecret(Note& why);

  // Names of segment files, as they are now.
  std::vector<std::string> SegmentNames() const;

  // Blobs of this very file were verified since the machine was started.
  bool Verified(const Digest& id, const ModelFile& file) const;
  void RecordVerified(const Digest& id, const ModelFile& file) const;
  // Last use is kept to the day.
  void Touch(const Digest& id) const;
  int64_t LastUsed(const Digest& id) const;  // seconds since 1970; 0: not known

  // Puts the file aside as NAME.bad, so that it is built anew.
  bool Quarantine(const std::string& name) const;

 private:
  bool OpenFile(Fd parent, const std::string& name, bool write, Note& why);
  bool OpenDirectories(bool write, Note& why);
};

inline constexpr const char* kSegmentSuffix = ".fbpk";
inline constexpr const char* kBadSuffix = ".bad";

// Where `path` would be: absolute, with the links of its parent resolved. "" with `why` when that cannot be
// said.
std::string Canonical(const std::string& path, Note& why);
// $XDG_CACHE_HOME/fusebox or ~/.cache/fusebox; "" when this user has no home, or another's.
std::string DefaultPath();
bool IsSingleFile(const std::string& path);
// Whether a file, which may be damaged, is the rest of a segment: it begins like one, or FILE.d is there with
// its secret.
bool WasSegment(int directory, const std::string& file);

}  // namespace fusebox::cache
