// SPDX-License-Identifier: Apache-2.0
// Trusted files and directories of a store: opened relative to a checked directory, never through a symbolic
// link in the last part, owned by this user or root, not writable by others. Failures return a Note.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plugins/xnnpack/cache/digest.h"

namespace fusebox::cache {

// A problem and its handling.
struct Note {
  std::string code;     // stable: "no-home", "symlink", "foreign-owner", "no-space", "corrupt", ...
  std::string message;  // one sentence with the path
  int error = 0;        // errno, or 0
};

// A state of a file. An edit in place changes ctime even if size and mtime are restored.
struct ModelFile {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  friend bool operator==(const ModelFile&, const ModelFile&) = default;

  static ModelFile Of(const struct stat& status);
  static std::optional<ModelFile> Of(const char* path);  // follows symbolic links; none: not a regular file
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

// The note for a failed system call: a specific `code` for some errno values, else `code_otherwise`.
Note ErrnoNote(int error, const std::string& what, const char* code_otherwise);

// A directory that only this user may write. `create`: created if missing (mode 0700, one level).
Fd OpenDirectory(int at, const std::string& name, bool create, Note& why);
// A regular file for reading that no other user may write. Code of the note: "missing" if it does not exist.
Fd OpenTrusted(int directory, const std::string& name, Note& why);

// Writes all of `bytes` at `offset`. Returns false with errno. The file size limit is an error here, not a
// signal.
bool WriteAt(int fd, std::span<const std::byte> bytes, uint64_t offset);
bool WithinFileLimit(uint64_t end);
// The whole file; none if it is missing, untrusted or longer than `max_size`.
std::optional<std::string> ReadSmall(int directory, const std::string& name, size_t max_size);
// Replaces the content atomically. Returns false with errno if it fails; the old content stays.
bool ReplaceSmall(int directory, const std::string& name, std::span<const std::byte> content);

// A new file, invisible to other processes, with an exclusive lock until this process ends. The destructor
// removes it unless NameTemp succeeded.
struct TempFile {
  Fd fd;
  std::string name;    // in the directory; "": unnamed
  int directory = -1;  // borrowed

  TempFile() = default;
  TempFile(TempFile&& other) noexcept { *this = std::move(other); }
  TempFile& operator=(TempFile&& other) noexcept;
  ~TempFile();
};
TempFile MakeTemp(int directory, Note& why);
// Names it `name` in `to`. Returns false with errno if it fails: EEXIST if it exists and `replace` is false.
bool NameTemp(TempFile& temp, int to, const std::string& name, bool replace);

// Names in a directory, without "." and "..", sorted.
std::vector<std::string> List(int directory);
std::string RandomName();
// Names of a store's files: 32 hexadecimal digits and `suffix`. Files with other names are never changed.
bool IsStoreName(std::string_view name, std::string_view suffix);
bool FillRandom(void* to, size_t size);

// Returns an exclusive lock on `name`, after waiting at most `milliseconds`, or no file if another process
// holds it, or if locks are unsupported.
Fd Lock(int directory, const char* name, int milliseconds);

}  // namespace fusebox::cache
