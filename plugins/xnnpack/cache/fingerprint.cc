// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/fingerprint.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <xnnpack.h>

#include <cstring>
#include <span>

#include "plugins/xnnpack/cache/canary.h"
#include "plugins/xnnpack/cache/digest.h"

namespace fusebox::xnnpack {

namespace {

std::string BuildIdOf(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const size_t name = (note.n_namesz + 3) & ~3u, text = (note.n_descsz + 3) & ~3u;
      at += sizeof note;
      if (static_cast<size_t>(end - at) < name + text) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(at, "GNU", 4) == 0)
        return std::string(at + name, note.n_descsz);
      at += name + text;
    }
  }
  return {};
}

// The object that holds a function of XNNPACK, whatever it is linked into.
int FindLibrary(dl_phdr_info* info, size_t, void* out) {
  const auto address = reinterpret_cast<uintptr_t>(&xnn_create_runtime_v4);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || address < begin || address - begin >= segment.p_memsz) continue;
    *static_cast<std::string*>(out) = BuildIdOf(*info);
    return 1;
  }
  return 0;
}

std::string Cpu() {
  std::string cpu;
#if defined(__x86_64__)
#define FUSEBOX_ISA(name) cpu += __builtin_cpu_supports(name) ? name " " : ""
  FUSEBOX_ISA("ssse3");
  FUSEBOX_ISA("sse4.1");
  FUSEBOX_ISA("avx");
  FUSEBOX_ISA("fma");
  FUSEBOX_ISA("avx2");
  FUSEBOX_ISA("avx512f");
  FUSEBOX_ISA("avx512bw");
  FUSEBOX_ISA("avx512vl");
  FUSEBOX_ISA("avx512vbmi");
  FUSEBOX_ISA("avx512vnni");
#undef FUSEBOX_ISA
#endif
  return cpu;
}

}  // namespace

const std::string& LibraryBuild() {
  static const std::string build = [] {
    std::string id;
    dl_iterate_phdr(FindLibrary, &id);
    if (id.empty())
      id.assign(static_cast<const char*>(xnn_experimental_get_build_identifier_data()),
                xnn_experimental_get_build_identifier_size());
    return id;
  }();
  return build;
}

const Fingerprints& Fingerprints::Measured() {
  static const Fingerprints measured = [] {
    Fingerprints f;
    f.measured_ = std::make_unique<Measurements>();
    f.cpu_ = Cpu();
    return f;
  }();
  return measured;
}

uint64_t Fingerprints::of(Family family, Form form) const {
  if (measured_ == nullptr) return 0;
  Measurements::One& one = measured_->of[static_cast<size_t>(family)][static_cast<size_t>(form)];
  std::call_once(one.once, [&] {
    const std::string text = LibraryBuild() + std::to_string(PackCanary(family, form));
    one.digest = cache::Hash(std::as_bytes(std::span(text))).low;
  });
  return one.digest;
}

}  // namespace fusebox::xnnpack
