// SPDX-License-Identifier: Apache-2.0
// Reads properties of a library file without loading it. The file is untrusted.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "host/plugin/steps.h"

namespace fusebox {
namespace {

#if defined(__x86_64__)
constexpr unsigned kOurMachine = EM_X86_64;
#else
constexpr unsigned kOurMachine = EM_AARCH64;
#endif

std::string_view MachineName(unsigned machine) {
  switch (machine) {
    case EM_X86_64: return "x86_64";
    case EM_AARCH64: return "aarch64";
    case EM_386: return "i386";
    case EM_ARM: return "arm";
    case EM_RISCV: return "riscv";
    default: return "another machine";
  }
}

// Reads the struct at an offset; false if the file is shorter.
template <class T>
bool ReadAt(const Buffer& file, uint64_t offset, T& out) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, file.data() + offset, sizeof(T));
  return true;
}

bool ReadHeader(const Buffer& file, Elf64_Ehdr& header) {
  return ReadAt(file, 0, header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64;
}

// The readable segments.
std::vector<Elf64_Phdr> Segments(const Buffer& file, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> segments;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!ReadAt(file, header.e_phoff + i * sizeof(segment), segment)) break;
    segments.push_back(segment);
  }
  return segments;
}

class Dynamic {
 public:
  Dynamic(const Buffer& file, const Elf64_Ehdr& header) : file_(file), segments_(Segments(file, header)) {}

  // Names of the required libraries, as far as readable.
  std::vector<std::string> Needed() const {
    std::vector<uint64_t> names;
    uint64_t strings = 0;
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_DYNAMIC) continue;
      Elf64_Dyn entry;
      for (uint64_t at = segment.p_offset; ReadAt(file_, at, entry) && entry.d_tag != DT_NULL;
           at += sizeof(entry)) {
        if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
        if (entry.d_tag == DT_STRTAB) strings = OffsetOf(entry.d_un.d_ptr);
      }
    }
    std::vector<std::string> needed;
    for (const uint64_t name : names) needed.push_back(TextAt(strings + name));
    return needed;
  }

 private:
  // File offset of a mapped address.
  uint64_t OffsetOf(uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz)
        return address - segment.p_vaddr + segment.p_offset;
    }
    return file_.size();
  }
  std::string TextAt(uint64_t offset) const {
    if (offset >= file_.size()) return {};
    const auto* text = reinterpret_cast<const char*>(file_.data()) + offset;
    return std::string(text, strnlen(text, file_.size() - offset));
  }

  const Buffer& file_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

std::string CutOff(const std::string& path) {
  const auto file = MapFile(path);
  Elf64_Ehdr header;
  if (!file || !ReadHeader(*file, header)) return {};
  uint64_t end = 0;  // of everything that the headers refer to; an overflowing sum is invalid
  const auto reach = [&](uint64_t offset, uint64_t size) {
    end = std::max(end, offset + size < offset ? UINT64_MAX : offset + size);
  };
  reach(header.e_phoff, uint64_t{header.e_phnum} * header.e_phentsize);
  reach(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize);
  for (const Elf64_Phdr& segment : Segments(*file, header)) reach(segment.p_offset, segment.p_filesz);
  if (end <= file->size()) return {};
  return "it is truncated: it has " + std::to_string(file->size()) + " bytes and should have at least " +
         std::to_string(end);
}

std::string ForeignMachine(const std::string& path) {
  const auto file = MapFile(path);
  Elf64_Ehdr header;
  if (!file || !ReadHeader(*file, header) || header.e_machine == kOurMachine) return {};
  return std::string(MachineName(header.e_machine));
}

std::string ForeignSanitizer(const std::string& path) {
  const auto file = MapFile(path);
  Elf64_Ehdr header;
  if (!file || !ReadHeader(*file, header)) return {};
  for (const std::string& name : Dynamic(*file, header).Needed()) {
    for (const auto& [prefix, sanitizer, bit] : {std::tuple("libasan.", "address", FBX_BUILT_WITH_ASAN),
                                                 std::tuple("libtsan.", "thread", FBX_BUILT_WITH_TSAN)}) {
      if (name.starts_with(prefix) && !(FBX_BUILD_FLAGS & bit)) return sanitizer;
    }
  }
  return {};
}

}  // namespace fusebox
