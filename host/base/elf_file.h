// SPDX-License-Identifier: Apache-2.0
// ElfFile: an ELF file for 64 bits, read without loading it. The file is untrusted: all reads are
// bounds-checked.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/base/buffer.h"
#include "host/base/status.h"

namespace fusebox {

class ElfFile {
 public:
  // Returns nothing if `file` is not an ELF file for 64 bits. Program headers outside of the file are left
  // out.
  static std::optional<ElfFile> Read(Buffer file);

  const Elf64_Ehdr& header() const { return header_; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  uint64_t size() const { return file_.size(); }

  // Copies the struct at an offset of the file; returns false if the file ends before it does.
  template <class T>
  bool At(uint64_t offset, T& out) const {
    if (offset > file_.size() || file_.size() - offset < sizeof(T)) return false;
    std::memcpy(&out, file_.data() + offset, sizeof(T));
    return true;
  }
  // Returns the text that begins at an offset, up to a zero or the end of the file; nothing outside of it.
  std::optional<std::string> TextAt(uint64_t offset) const;
  // Returns the file offset of a mapped address; size() if none is mapped from the file.
  uint64_t OffsetOf(uint64_t address) const;
  // Returns the entries of the dynamic section. Error: the section is outside of the file.
  Result<std::vector<Elf64_Dyn>> Dynamic() const;

 private:
  explicit ElfFile(Buffer file) : file_(std::move(file)) {}

  Buffer file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace fusebox
