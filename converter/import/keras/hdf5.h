// SPDX-License-Identifier: Apache-2.0
// HDF5 reader: groups, text attributes, numeric datasets. It never opens anything outside the file (no
// external links or storage, no virtual datasets, no filter plugins) and checks sizes before it reads values.
// Thread-safe; calls are serialized, because the HDF5 library has global state.
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
  // From a file, or from bytes in memory; `name` is the prefix of error messages (the caller of Open adds the
  // path). Both first run the HDF5 check (hdf5_check.h). Values stored in a usable form are not copied: the
  // buffers refer to the mapped file or to `bytes`.
  static Result<Hdf5File> Open(const std::string& path);
  static Result<Hdf5File> FromBytes(Buffer bytes, std::string name);
  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) noexcept;
  ~Hdf5File();

  // Paths are "/a/b" or "a/b". Soft and external links count as missing.
  bool IsGroup(const std::string& path) const;
  bool IsDataset(const std::string& path) const;
  Result<std::vector<std::string>> Children(const std::string& group) const;
  // Text attributes of a group, one string or a list. A list may be split into name0, name1, ...
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
