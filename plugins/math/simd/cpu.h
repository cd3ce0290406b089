// SPDX-License-Identifier: Apache-2.0
// Features of the CPU.
#pragma once

#if defined(__x86_64__)
#include <sys/platform/x86.h>

// Returns whether the CPU has the feature, a name of <sys/platform/x86.h>, and the system uses it. The C
// library has read CPUID. A virtual machine leaves for each CPUID, which takes 1 to 25 us:
// __builtin_cpu_supports executes 20 of them when a library is loaded.
#define FUSEBOX_CPU_HAS(feature) (CPU_FEATURE_ACTIVE(feature) != 0)
#endif
