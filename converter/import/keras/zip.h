// SPDX-License-Identifier: Apache-2.0
// Members of a zip archive. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/base/buffer.h"
#include "host/base/status.h"

namespace fusebox::keras {

inline constexpr std::string_view kZipSignature = "PK\x03\x04";

class ZipFile {
 public:
  // Shares the bytes.
  static Result<ZipFile> Open(Buffer bytes);
  ZipFile(ZipFile&&) noexcept;
  ZipFile& operator=(ZipFile&&) noexcept;
  ~ZipFile();

  bool Has(const std::string& member) const;
  // The unpacked member; its checksum is verified. Errors: missing, corrupt, or larger than `limit`.
  Result<Buffer> Read(const std::string& member, size_t limit) const;

 private:
  struct Impl;
  explicit ZipFile(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox::keras
