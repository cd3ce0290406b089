// SPDX-License-Identifier: Apache-2.0
// Features of the CPU that not every compiler knows by name.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fusebox::math {

#if defined(__x86_64__)
// Returns whether the CPU has dot products of bytes for AVX2 (leaf 7.1, EAX, bit 4 of CPUID).
// __builtin_cpu_supports knows the name in GCC, but not in Clang 14.
inline bool HasAvxVnni() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
#endif

}  // namespace fusebox::math
