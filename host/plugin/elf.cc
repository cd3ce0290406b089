// SPDX-License-Identifier: Apache-2.0
// Reads properties of a library file without loading it. The file is untrusted.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "host/plugin/crypto.h"
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

// File offset of a mapped address; the size of the file if it is not mapped from it.
uint64_t OffsetOf(const Buffer& file, const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return address - segment.p_vaddr + segment.p_offset;
  }
  return file.size();
}

std::string TextAt(const Buffer& file, uint64_t offset) {
  if (offset >= file.size()) return {};
  const auto* text = reinterpret_cast<const char*>(file.data()) + offset;
  return std::string(text, strnlen(text, file.size() - offset));
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
        if (entry.d_tag == DT_STRTAB) strings = OffsetOf(file_, segments_, entry.d_un.d_ptr);
      }
    }
    std::vector<std::string> needed;
    for (const uint64_t name : names) needed.push_back(TextAt(file_, strings + name));
    return needed;
  }

 private:
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

bool ReadEntry(const Buffer& file, fbx_entry& entry) {
  Elf64_Ehdr header;
  if (!ReadHeader(file, header)) return false;
  const auto section = [&](uint64_t index, Elf64_Shdr& out) {
    return index < header.e_shnum && ReadAt(file, header.e_shoff + index * sizeof(out), out);
  };
  Elf64_Shdr symbols;
  Elf64_Shdr strings;
  for (uint64_t i = 0; section(i, symbols); ++i) {
    if (symbols.sh_type != SHT_DYNSYM || !section(symbols.sh_link, strings)) continue;
    Elf64_Sym symbol;
    for (uint64_t at = 0; at < symbols.sh_size && ReadAt(file, symbols.sh_offset + at, symbol);
         at += sizeof(symbol)) {
      if (symbol.st_shndx == SHN_UNDEF ||
          TextAt(file, strings.sh_offset + symbol.st_name) != "fusebox_entry_v1")
        continue;
      return ReadAt(file, OffsetOf(file, Segments(file, header), symbol.st_value), entry);
    }
  }
  return false;
}

std::string BuildId(const Buffer& file) {
  Elf64_Ehdr header;
  if (!ReadHeader(file, header)) return {};
  for (const Elf64_Phdr& segment : Segments(file, header)) {
    if (segment.p_type != PT_NOTE) continue;
    Elf64_Nhdr note;
    for (uint64_t at = 0; at < segment.p_filesz && ReadAt(file, segment.p_offset + at, note);) {
      const auto padded = [](uint64_t size) { return (size + 3) / 4 * 4; };
      const uint64_t name = segment.p_offset + at + sizeof(note);
      const uint64_t id = name + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && TextAt(file, name) == "GNU" && note.n_descsz <= 64 &&
          id <= file.size() && file.size() - id >= note.n_descsz)
        return Hexadecimal(file.bytes().subspan(id, note.n_descsz));
      at += sizeof(note) + padded(note.n_namesz) + padded(note.n_descsz);
    }
  }
  return {};
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
