// SPDX-License-Identifier: Apache-2.0
// Reads properties of a library file without loading it. The file is untrusted.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "host/base/elf_file.h"
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

}  // namespace

std::string CutOff(const Buffer& bytes) {
  const auto file = ElfFile::Read(bytes);
  if (!file) return {};
  const Elf64_Ehdr& header = file->header();
  uint64_t end = 0;  // of everything that the headers refer to; an overflowing sum is invalid
  const auto reach = [&](uint64_t offset, uint64_t size) {
    end = std::max(end, offset + size < offset ? UINT64_MAX : offset + size);
  };
  reach(header.e_phoff, uint64_t{header.e_phnum} * header.e_phentsize);
  reach(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize);
  for (const Elf64_Phdr& segment : file->segments()) reach(segment.p_offset, segment.p_filesz);
  if (end <= file->size()) return {};
  return "it is truncated: it has " + std::to_string(file->size()) + " bytes and should have at least " +
         std::to_string(end);
}

bool ReadEntry(const Buffer& bytes, fbx_entry& entry) {
  const auto file = ElfFile::Read(bytes);
  if (!file) return false;
  const Elf64_Ehdr& header = file->header();
  const auto section = [&](uint64_t index, Elf64_Shdr& out) {
    return index < header.e_shnum && file->At(header.e_shoff + index * sizeof(out), out);
  };
  Elf64_Shdr symbols;
  Elf64_Shdr strings;
  for (uint64_t i = 0; section(i, symbols); ++i) {
    if (symbols.sh_type != SHT_DYNSYM || !section(symbols.sh_link, strings)) continue;
    Elf64_Sym symbol;
    for (uint64_t at = 0; at < symbols.sh_size && file->At(symbols.sh_offset + at, symbol);
         at += sizeof(symbol)) {
      if (symbol.st_shndx == SHN_UNDEF ||
          file->TextAt(strings.sh_offset + symbol.st_name) != "fusebox_entry_v1")
        continue;
      return file->At(file->OffsetOf(symbol.st_value), entry);
    }
  }
  return false;
}

std::string BuildId(const Buffer& bytes) {
  const auto file = ElfFile::Read(bytes);
  if (!file) return {};
  for (const Elf64_Phdr& segment : file->segments()) {
    if (segment.p_type != PT_NOTE) continue;
    Elf64_Nhdr note;
    for (uint64_t at = 0; at < segment.p_filesz && file->At(segment.p_offset + at, note);) {
      const auto padded = [](uint64_t size) { return (size + 3) / 4 * 4; };
      const uint64_t name = segment.p_offset + at + sizeof(note);
      const uint64_t id = name + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && file->TextAt(name) == "GNU" && note.n_descsz <= 64 &&
          id <= bytes.size() && bytes.size() - id >= note.n_descsz)
        return Hexadecimal(bytes.bytes().subspan(id, note.n_descsz));
      at += sizeof(note) + padded(note.n_namesz) + padded(note.n_descsz);
    }
  }
  return {};
}

std::string ForeignMachine(const std::string& path) {
  const auto bytes = MapFile(path);
  const auto file = bytes ? ElfFile::Read(*bytes) : std::nullopt;
  if (!file || file->header().e_machine == kOurMachine) return {};
  return std::string(MachineName(file->header().e_machine));
}

std::string ForeignSanitizer(const Buffer& bytes) {
  const auto file = ElfFile::Read(bytes);
  if (!file) return {};
  const auto dynamic = file->Dynamic();
  if (!dynamic) return {};
  const auto table = std::ranges::find(*dynamic, DT_STRTAB, &Elf64_Dyn::d_tag);
  if (table == dynamic->end()) return {};
  const uint64_t strings = file->OffsetOf(table->d_un.d_ptr);
  for (const Elf64_Dyn& entry : *dynamic) {
    const std::string name =
        entry.d_tag == DT_NEEDED ? file->TextAt(strings + entry.d_un.d_val).value_or("") : "";
    for (const auto& [prefix, sanitizer, bit] : {std::tuple("libasan.", "address", FBX_BUILT_WITH_ASAN),
                                                 std::tuple("libtsan.", "thread", FBX_BUILT_WITH_TSAN)}) {
      if (name.starts_with(prefix) && !(FBX_BUILD_FLAGS & bit)) return sanitizer;
    }
  }
  return {};
}

}  // namespace fusebox
