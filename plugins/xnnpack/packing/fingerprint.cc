// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/fingerprint.h"

#include <xnnpack.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <mutex>
#include <span>

#include "plugins/math/simd/cpu.h"
#include "plugins/xnnpack/cache/digest.h"
#include "plugins/xnnpack/packing/build.h"
#include "plugins/xnnpack/packing/canary.h"

namespace fusebox::xnnpack {

namespace {

std::string Cpu() {
  std::string cpu;
#if defined(__x86_64__)
#define FUSEBOX_ISA(name, feature) cpu += FUSEBOX_CPU_HAS(feature) ? name " " : ""
  FUSEBOX_ISA("ssse3", SSSE3);
  FUSEBOX_ISA("sse4.1", SSE4_1);
  FUSEBOX_ISA("avx", AVX);
  FUSEBOX_ISA("fma", FMA);
  FUSEBOX_ISA("avx2", AVX2);
  FUSEBOX_ISA("avx512f", AVX512F);
  FUSEBOX_ISA("avx512bw", AVX512BW);
  FUSEBOX_ISA("avx512vl", AVX512VL);
  FUSEBOX_ISA("avx512vbmi", AVX512_VBMI);
  FUSEBOX_ISA("avx512vnni", AVX512_VNNI);
#undef FUSEBOX_ISA
#elif defined(__aarch64__)
  const unsigned long features = getauxval(AT_HWCAP);
  const unsigned long more = getauxval(AT_HWCAP2);
  const auto add = [&](bool has, const char* name) { cpu += has ? name : ""; };
  add(features & HWCAP_ASIMDHP, "fp16 ");
  add(features & HWCAP_ASIMDDP, "dotprod ");
  add(features & HWCAP_SVE, "sve ");
  add(more & HWCAP2_I8MM, "i8mm ");
  add(more & HWCAP2_BF16, "bf16 ");
#endif
  return cpu;
}

// Returns the build of the object that contains XNNPACK.
const std::string& LibraryBuild() {
  static const std::string build = [] {
    std::string id = BuildIdAt(reinterpret_cast<const void*>(&xnn_create_runtime_v4));
    if (id.empty())
      id.assign(static_cast<const char*>(xnn_experimental_get_build_identifier_data()),
                xnn_experimental_get_build_identifier_size());
    return id;
  }();
  return build;
}

}  // namespace

const std::string& CpuText() {
  static const std::string cpu = Cpu();
  return cpu;
}

const std::string& LibraryName() {
  static const std::string name = FileNameAt(reinterpret_cast<const void*>(&xnn_create_runtime_v4));
  return name;
}

const std::string& LibraryBuildText() {
  static const std::string text = [] {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string hex;
    for (const char c : LibraryBuild()) {
      hex += kDigits[static_cast<uint8_t>(c) >> 4];
      hex += kDigits[c & 15];
    }
    return hex;
  }();
  return text;
}

uint64_t FingerprintOf(Family family, Form form) {
  struct Measurement {
    std::once_flag once;
    uint64_t digest = 0;
  };
  static Measurement all[kFamilies][kForms];
  Measurement& one = all[static_cast<size_t>(family)][static_cast<size_t>(form)];
  std::call_once(one.once, [&] {
    const std::string text = LibraryBuild() + std::to_string(PackCanary(family, form));
    one.digest = cache::Hash(std::as_bytes(std::span(text))).low;
  });
  return one.digest;
}

}  // namespace fusebox::xnnpack
