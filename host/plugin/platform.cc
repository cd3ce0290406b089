// SPDX-License-Identifier: Apache-2.0
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <sys/platform/x86.h>
#endif

#include "host/plugin/steps.h"

namespace fusebox {
namespace {

#if defined(__x86_64__)

constexpr std::string_view kPlatform = "linux-x86_64";

bool HasFeature(std::string_view name) {
  // The C library has read CPUID, for which a virtual machine leaves each time.
#define FUSEBOX_FEATURE(text, feature) \
  if (name == text) return CPU_FEATURE_ACTIVE(feature) != 0
  FUSEBOX_FEATURE("sse4.1", SSE4_1);
  FUSEBOX_FEATURE("sse4.2", SSE4_2);
  FUSEBOX_FEATURE("popcnt", POPCNT);
  FUSEBOX_FEATURE("avx", AVX);
  FUSEBOX_FEATURE("avx2", AVX2);
  FUSEBOX_FEATURE("fma", FMA);
  FUSEBOX_FEATURE("bmi", BMI1);
  FUSEBOX_FEATURE("bmi2", BMI2);
  FUSEBOX_FEATURE("avx512f", AVX512F);
  FUSEBOX_FEATURE("avx512bw", AVX512BW);
  FUSEBOX_FEATURE("avx512cd", AVX512CD);
  FUSEBOX_FEATURE("avx512dq", AVX512DQ);
  FUSEBOX_FEATURE("avx512vl", AVX512VL);
  FUSEBOX_FEATURE("avx512vnni", AVX512_VNNI);
  FUSEBOX_FEATURE("avx512bf16", AVX512_BF16);
#undef FUSEBOX_FEATURE
  return false;
}

#elif defined(__aarch64__)

constexpr std::string_view kPlatform = "linux-aarch64";

bool HasFeature(std::string_view name) {
  const unsigned long caps = getauxval(AT_HWCAP);
  const unsigned long caps2 = getauxval(AT_HWCAP2);
  if (name == "asimd") return caps & HWCAP_ASIMD;
  if (name == "fp16") return caps & HWCAP_ASIMDHP;
  if (name == "dotprod") return caps & HWCAP_ASIMDDP;
  if (name == "sve") return caps & HWCAP_SVE;
  if (name == "i8mm") return caps2 & HWCAP2_I8MM;
  if (name == "bf16") return caps2 & HWCAP2_BF16;
  return false;
}

#else
#error "no platform key for this machine"
#endif

}  // namespace

std::string_view PlatformKey() { return kPlatform; }

std::string MissingCpuFeature(const std::vector<std::string>& features) {
  for (const std::string& feature : features) {
    if (!HasFeature(feature)) return feature;
  }
  return {};
}

}  // namespace fusebox
