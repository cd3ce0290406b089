// SPDX-License-Identifier: Apache-2.0
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "host/plugin/steps.h"

namespace fusebox {
namespace {

#if defined(__x86_64__)

constexpr std::string_view kPlatform = "linux-x86_64";

bool HasFeature(std::string_view name) {
#define FUSEBOX_FEATURE(feature) \
  if (name == feature) return __builtin_cpu_supports(feature) != 0
  FUSEBOX_FEATURE("sse4.1");
  FUSEBOX_FEATURE("sse4.2");
  FUSEBOX_FEATURE("popcnt");
  FUSEBOX_FEATURE("avx");
  FUSEBOX_FEATURE("avx2");
  FUSEBOX_FEATURE("fma");
  FUSEBOX_FEATURE("bmi");
  FUSEBOX_FEATURE("bmi2");
  FUSEBOX_FEATURE("avx512f");
  FUSEBOX_FEATURE("avx512bw");
  FUSEBOX_FEATURE("avx512cd");
  FUSEBOX_FEATURE("avx512dq");
  FUSEBOX_FEATURE("avx512vl");
  FUSEBOX_FEATURE("avx512vnni");
  FUSEBOX_FEATURE("avx512bf16");
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
