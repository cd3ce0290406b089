// SPDX-License-Identifier: Apache-2.0
#include "host/check/elf.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "host/base/buffer.h"

namespace fusebox::check {
namespace {

constexpr uint64_t kMostEntries = 1 << 20;  // of any table

class Reader {
 public:
  explicit Reader(Buffer file) : file_(std::move(file)) {}

  Result<ElfFacts> Read() {
    if (!At(0, header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64)
      return Invalid("it is not an ELF file for 64 bits");
    FUSEBOX_TRY(ReadSegments());
    FUSEBOX_TRY(ReadDynamic());
    FUSEBOX_TRY(ReadNames());
    FUSEBOX_TRY(ReadExports());
    return std::move(facts_);
  }

 private:
  template <class T>
  bool At(uint64_t offset, T& out) const {
    if (offset > file_.size() || file_.size() - offset < sizeof(T)) return false;
    std::memcpy(&out, file_.data() + offset, sizeof(T));
    return true;
  }

  Status ReadSegments() {
    bool stack = false;
    for (uint64_t i = 0; i < header_.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (!At(header_.e_phoff + i * sizeof(segment), segment))
        return Invalid("the program headers are outside of the file");
      segments_.push_back(segment);
      if (segment.p_type != PT_GNU_STACK) continue;
      stack = true;
      facts_.executable_stack = (segment.p_flags & PF_X) != 0;
    }
    if (!stack) facts_.executable_stack = true;  // the default of the loader
    return {};
  }

  Status ReadDynamic() {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_DYNAMIC) continue;
      for (uint64_t i = 0; i < kMostEntries; ++i) {
        Elf64_Dyn entry;
        if (!At(segment.p_offset + i * sizeof(entry), entry))
          return Invalid("the dynamic section is outside of the file");
        if (entry.d_tag == DT_NULL) break;
        dynamic_.push_back(entry);
      }
    }
    if (dynamic_.empty()) return Invalid("it has no dynamic section");
    return {};
  }

  std::optional<uint64_t> Value(int64_t tag) const {
    for (const Elf64_Dyn& entry : dynamic_)
      if (entry.d_tag == tag) return entry.d_un.d_val;
    return std::nullopt;
  }

  // File offset of a mapped address; outside of the file if it is not mapped.
  uint64_t OffsetOf(uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz)
        return address - segment.p_vaddr + segment.p_offset;
    }
    return file_.size();
  }

  Result<std::string> Text(uint64_t offset) const {
    const uint64_t at = strings_ + offset;
    if (offset > file_.size() || at >= file_.size()) return Invalid("a name is outside of the file");
    const auto* text = reinterpret_cast<const char*>(file_.data()) + at;
    return std::string(text, strnlen(text, file_.size() - at));
  }

  Status ReadNames() {
    strings_ = OffsetOf(Value(DT_STRTAB).value_or(UINT64_MAX));
    facts_.text_relocations = Value(DT_TEXTREL) || (Value(DT_FLAGS).value_or(0) & DF_TEXTREL) != 0;
    for (const Elf64_Dyn& entry : dynamic_) {
      if (entry.d_tag == DT_NEEDED) {
        FUSEBOX_ASSIGN(std::string name, Text(entry.d_un.d_val));
        facts_.needed.push_back(std::move(name));
      }
      if (entry.d_tag == DT_SONAME) {
        FUSEBOX_ASSIGN(facts_.soname, Text(entry.d_un.d_val));
      }
      if (entry.d_tag != DT_RUNPATH && entry.d_tag != DT_RPATH) continue;
      FUSEBOX_ASSIGN(const std::string paths, Text(entry.d_un.d_val));
      for (size_t begin = 0; begin <= paths.size();) {
        const size_t end = std::min(paths.find(':', begin), paths.size());
        facts_.run_paths.push_back(paths.substr(begin, end - begin));
        begin = end + 1;
      }
    }
    return {};
  }

  // Number of dynamic symbols: stated by one hash table, or the end of the longest chain of the other.
  Result<uint64_t> SymbolCount() const {
    uint32_t words[4];
    if (const auto table = Value(DT_HASH)) {
      if (!At(OffsetOf(*table), words)) return Invalid("the hash table is outside of the file");
      return words[1];
    }
    const auto table = Value(DT_GNU_HASH);
    if (!table) return uint64_t{0};
    const uint64_t at = OffsetOf(*table);
    if (!At(at, words)) return Invalid("the hash table is outside of the file");
    const uint64_t buckets = at + sizeof(words) + uint64_t{words[2]} * 8;
    const uint64_t chains = buckets + uint64_t{words[0]} * 4;
    uint64_t last = 0;
    for (uint64_t i = 0; i < words[0]; ++i) {
      uint32_t first = 0;
      if (i > kMostEntries || !At(buckets + i * 4, first))
        return Invalid("the hash table is outside of the file");
      last = std::max<uint64_t>(last, first);
    }
    if (last < words[1]) return uint64_t{words[1]};
    for (uint32_t hash = 0; (hash & 1) == 0; ++last)
      if (!At(chains + (last - words[1]) * 4, hash)) return Invalid("the hash table is outside of the file");
    return last;
  }

  Status ReadExports() {
    FUSEBOX_ASSIGN(const uint64_t count, SymbolCount());
    const uint64_t table = OffsetOf(Value(DT_SYMTAB).value_or(UINT64_MAX));
    for (uint64_t i = 1; i < count; ++i) {
      Elf64_Sym symbol;
      if (i > kMostEntries || !At(table + i * sizeof(symbol), symbol))
        return Invalid("the symbols are outside of the file");
      const int binding = ELF64_ST_BIND(symbol.st_info);
      const int visibility = ELF64_ST_VISIBILITY(symbol.st_other);
      if (symbol.st_shndx == SHN_UNDEF || binding == STB_LOCAL || visibility == STV_HIDDEN ||
          visibility == STV_INTERNAL)
        continue;
      FUSEBOX_ASSIGN(std::string name, Text(symbol.st_name));
      facts_.exports.push_back({std::move(name), binding == STB_WEAK, binding == STB_GNU_UNIQUE});
    }
    return {};
  }

  const Buffer file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Dyn> dynamic_;
  uint64_t strings_ = 0;
  ElfFacts facts_;
};

}  // namespace

Result<ElfFacts> ReadElf(const std::string& path) {
  FUSEBOX_ASSIGN(Buffer file, MapFile(path));
  return Reader(std::move(file)).Read().At(path);
}

}  // namespace fusebox::check
