// SPDX-License-Identifier: Apache-2.0
// Reading HDF5: groups, text attributes, float datasets. Nothing outside the file is ever opened (no external
// links or storage, no virtual datasets, no filter plugins), and sizes are told before anything is read. Any
// thread; calls take turns, since the library keeps global state.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/buffer.h"
#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::keras {

inline constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

class Hdf5File {
 public:
  // A file of the file system, and the bytes of one that lie in memory, under a name for messages (who opens
  // a file by its path says that path himself). Values that are stored as they are needed are not copied:
  // they are parts of the mapped file, or of those bytes.
  static Result<Hdf5File> Open(const std::string& path);
  static Result<Hdf5File> FromBytes(Buffer bytes, std::string name);
  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) noexcept;
  ~Hdf5File();

  // Paths are "/a/b" or "a/b". A part of the path that is a soft or external link does not exist.
  bool IsGroup(const std::string& path) const;
  bool IsDataset(const std::string& path) const;
  Result<std::vector<std::string>> Children(const std::string& group) const;
  // Text attributes of a group, one string or a list of them. Lists may stand in pieces: name0, name1, ...
  Result<std::optional<std::string>> Text(const std::string& group, const std::string& attribute) const;
  Result<std::vector<std::string>> Texts(const std::string& group, const std::string& attribute) const;

  Result<Type> TypeOf(const std::string& dataset) const;  // f32, f64, bf16 or integers
  Result<Buffer> Read(const std::string& dataset) const;  // row-major, of that type

 private:
  struct Impl;
  explicit Hdf5File(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox::keras
