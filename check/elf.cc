// SPDX-License-Identifier: Apache-2.0
#include "check/elf.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "host/base/elf_file.h"

namespace fusebox::check {
namespace {

constexpr uint64_t kMostEntries = 1 << 20;  // of any table

class Reader {
 public:
  explicit Reader(ElfFile file) : file_(std::move(file)) {}

  Result<ElfFacts> Read() {
    if (file_.segments().size() != file_.header().e_phnum)
      return Invalid("the program headers are outside of the file");
    // Without such a segment, the loader's default is a stack that is executable.
    const auto stack = std::ranges::find(file_.segments(), PT_GNU_STACK, &Elf64_Phdr::p_type);
    facts_.executable_stack = stack == file_.segments().end() || (stack->p_flags & PF_X) != 0;
    FUSEBOX_ASSIGN(dynamic_, file_.Dynamic());
    if (dynamic_.empty()) return Invalid("it has no dynamic section");
    FUSEBOX_TRY(ReadNames());
    FUSEBOX_TRY(ReadExports());
    return std::move(facts_);
  }

 private:
  std::optional<uint64_t> Value(int64_t tag) const {
    for (const Elf64_Dyn& entry : dynamic_)
      if (entry.d_tag == tag) return entry.d_un.d_val;
    return std::nullopt;
  }

  Result<std::string> Text(uint64_t offset) const {
    const auto text = offset > file_.size() ? std::nullopt : file_.TextAt(strings_ + offset);
    if (!text) return Invalid("a name is outside of the file");
    return *text;
  }

  Status ReadNames() {
    strings_ = file_.OffsetOf(Value(DT_STRTAB).value_or(UINT64_MAX));
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
      if (!file_.At(file_.OffsetOf(*table), words)) return Invalid("the hash table is outside of the file");
      return words[1];
    }
    const auto table = Value(DT_GNU_HASH);
    if (!table) return uint64_t{0};
    const uint64_t at = file_.OffsetOf(*table);
    if (!file_.At(at, words)) return Invalid("the hash table is outside of the file");
    const uint64_t buckets = at + sizeof(words) + uint64_t{words[2]} * 8;
    const uint64_t chains = buckets + uint64_t{words[0]} * 4;
    uint64_t last = 0;
    for (uint64_t i = 0; i < words[0]; ++i) {
      uint32_t first = 0;
      if (i > kMostEntries || !file_.At(buckets + i * 4, first))
        return Invalid("the hash table is outside of the file");
      last = std::max<uint64_t>(last, first);
    }
    if (last < words[1]) return uint64_t{words[1]};
    for (uint32_t hash = 0; (hash & 1) == 0; ++last)
      if (!file_.At(chains + (last - words[1]) * 4, hash))
        return Invalid("the hash table is outside of the file");
    return last;
  }

  Status ReadExports() {
    FUSEBOX_ASSIGN(const uint64_t count, SymbolCount());
    const uint64_t table = file_.OffsetOf(Value(DT_SYMTAB).value_or(UINT64_MAX));
    for (uint64_t i = 1; i < count; ++i) {
      Elf64_Sym symbol;
      if (i > kMostEntries || !file_.At(table + i * sizeof(symbol), symbol))
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

  const ElfFile file_;
  std::vector<Elf64_Dyn> dynamic_;
  uint64_t strings_ = 0;
  ElfFacts facts_;
};

}  // namespace

Result<ElfFacts> ReadElf(const std::string& path) {
  FUSEBOX_ASSIGN(Buffer bytes, MapFile(path));
  std::optional<ElfFile> file = ElfFile::Read(std::move(bytes));
  Result<ElfFacts> facts = Invalid("it is not an ELF file for 64 bits");
  if (file) facts = Reader(*std::move(file)).Read();
  return std::move(facts).At(path);
}

}  // namespace fusebox::check
