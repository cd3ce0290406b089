// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/build.h"

#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>

namespace fusebox::xnnpack {

namespace {

std::string BuildIdOf(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader returns addresses as numbers.
    const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const size_t name = (note.n_namesz + 3) & ~3u;
      const size_t text = (note.n_descsz + 3) & ~3u;
      at += sizeof note;
      if (static_cast<size_t>(end - at) < name + text) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(at, "GNU", 4) == 0)
        return std::string(at + name, note.n_descsz);
      at += name + text;
    }
  }
  return {};
}

struct Search {
  uintptr_t address;
  std::string id, name;
  bool found = false;
};

int Visit(dl_phdr_info* info, size_t, void* context) {
  Search& search = *static_cast<Search*>(context);
  for (int i = 0; i < info->dlpi_phnum && !search.found; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    search.found =
        segment.p_type == PT_LOAD && search.address >= begin && search.address - begin < segment.p_memsz;
  }
  if (!search.found) return 0;
  search.id = BuildIdOf(*info);
  search.name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  return 1;
}

Search Find(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), {}, {}};
  dl_iterate_phdr(Visit, &search);
  return search;
}

// The executable has an empty name.
std::string StateOf(const std::string& name) {
  struct stat file;
  if (stat(name.empty() ? "/proc/self/exe" : name.c_str(), &file) != 0) return {};
  return std::to_string(file.st_size) + ' ' + std::to_string(file.st_mtim.tv_sec) + ' ' +
         std::to_string(file.st_mtim.tv_nsec);
}

}  // namespace

std::string BuildIdAt(const void* address) { return Find(address).id; }

std::string FileNameAt(const void* address) {
  const std::string path = Find(address).name;
  return path.substr(path.rfind('/') + 1);
}

std::string BuildAt(const void* address) {
  const Search search = Find(address);
  return search.found && search.id.empty() ? StateOf(search.name) : search.id;
}

}  // namespace fusebox::xnnpack
