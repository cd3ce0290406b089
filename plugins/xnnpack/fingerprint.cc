// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/fingerprint.h"

#include <xnnpack.h>

#include <span>

#include "plugins/xnnpack/build.h"
#include "plugins/xnnpack/canary.h"
#include "plugins/xnnpack/cache/digest.h"

namespace fusebox::xnnpack {

namespace {

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
    // Of the object that holds XNNPACK, whatever it is linked into.
    std::string id = BuildIdAt(reinterpret_cast<const void*>(&xnn_create_runtime_v4));
    if (id.empty())
      id.assign(static_cast<const char*>(xnn_experimental_get_build_identifier_data()),
                xnn_experimental_get_build_identifier_size());
    return id;
  }();
  return build;
}

std::string LibraryBuildText() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : LibraryBuild()) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[c & 15];
  }
  return text;
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
