// SPDX-License-Identifier: Apache-2.0
#include "host/base/elf_file.h"

namespace fusebox {
namespace {

constexpr size_t kMostDynamicEntries = 1 << 20;

}  // namespace

std::optional<ElfFile> ElfFile::Read(Buffer file) {
  ElfFile elf(std::move(file));
  if (!elf.At(0, elf.header_) || std::memcmp(elf.header_.e_ident, ELFMAG, SELFMAG) != 0 ||
      elf.header_.e_ident[EI_CLASS] != ELFCLASS64)
    return std::nullopt;
  for (uint64_t i = 0; i < elf.header_.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!elf.At(elf.header_.e_phoff + i * sizeof(segment), segment)) break;
    elf.segments_.push_back(segment);
  }
  return elf;
}

std::optional<std::string> ElfFile::TextAt(uint64_t offset) const {
  if (offset >= file_.size()) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(file_.data()) + offset;
  return std::string(text, strnlen(text, file_.size() - offset));
}

uint64_t ElfFile::OffsetOf(uint64_t address) const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return address - segment.p_vaddr + segment.p_offset;
  }
  return file_.size();
}

Result<std::vector<Elf64_Dyn>> ElfFile::Dynamic() const {
  std::vector<Elf64_Dyn> entries;
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = segment.p_offset; entries.size() < kMostDynamicEntries; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      if (!At(at, entry)) return Invalid("the dynamic section is outside of the file");
      if (entry.d_tag == DT_NULL) break;
      entries.push_back(entry);
    }
  }
  return entries;
}

}  // namespace fusebox
