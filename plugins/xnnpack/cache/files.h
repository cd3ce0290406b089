// SPDX-License-Identifier: Apache-2.0
// Files and directories as the store trusts them: opened relative to a checked directory, never through a
// symbolic link in the last part, owned by this user or root, not writable by others. All failures are
// answers, with a Note.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plugins/xnnpack/cache/digest.h"

namespace fusebox::cache {

// A problem and what was done about it.
struct Note {
  std::string code;     // stable: "no-home", "symlink", "foreign-owner", "no-space", "corrupt", ...
  std::string message;  // one sentence with the path
  int error = 0;        // errno, or 0
};

// A state of a file. An edit in place changes ctime even where size and mtime are kept.
struct ModelFile {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  friend bool operator==(const ModelFile&, const ModelFile&) = default;

  static ModelFile Of(const struct stat& status);
  static std::optional<ModelFile> Of(const char* path);  // follows symbolic links; none: no regular file
};

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// The note for a failed system call: `code` by errno where it has a name of its own, else `code_otherwise`.
Note ErrnoNote(int error, const std::string& what, const char* code_otherwise);

// A directory that nobody else may write. Made (mode 0700, one level) when `create`.
Fd OpenDirectory(int at, const std::string& name, bool create, Note& why);
// A regular file to read that no other user may write. The note's code is "missing" if the file does not
// exist.
Fd OpenTrusted(int directory, const std::string& name, Note& why);

// All of `bytes`, at `offset`. False: errno. A limit on file sizes is an error here, not a signal.
bool WriteAt(int fd, std::span<const std::byte> bytes, uint64_t offset);
bool WithinFileLimit(uint64_t end);
// The whole file; none when it is missing, not to be trusted or longer than `max_size`.
std::optional<std::string> ReadSmall(int directory, const std::string& name, size_t max_size);
// Readers see the old content or the new, never a part. False: errno, and the old file is as it was.
bool ReplaceSmall(int directory, const std::string& name, std::span<const std::byte> content);

// A new file that other processes do not see, with an exclusive lock that ends with this process. The
// destructor removes it unless NameTemp succeeded.
struct TempFile {
  Fd fd;
  std::string name;    // in the directory; "" when the file has none at all
  int directory = -1;  // borrowed

  TempFile() = default;
  TempFile(TempFile&& other) noexcept { *this = std::move(other); }
  TempFile& operator=(TempFile&& other) noexcept;
  ~TempFile();
};
TempFile MakeTemp(int directory, Note& why);
// Gives it `name` in `to`. False: errno; EEXIST when there is one and `replace` is false.
bool NameTemp(TempFile& temp, int to, const std::string& name, bool replace);

// Names in a directory, without "." and "..", sorted.
std::vector<std::string> List(int directory);
std::string RandomName();
// Names of a store's own files: 32 hexadecimal digits and `suffix`. Files with other names are never touched.
bool IsStoreName(std::string_view name, std::string_view suffix);
bool FillRandom(void* to, size_t size);

// An exclusive lock on `name`, waited for at most `milliseconds`. None: somebody else has it, or locks do not
// work there.
Fd Lock(int directory, const char* name, int milliseconds);

}  // namespace fusebox::cache
