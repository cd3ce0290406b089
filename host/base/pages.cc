// SPDX-License-Identifier: Apache-2.0
#include "host/base/pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace fusebox {

void PreferHugePages(void* memory, size_t bytes) {
  constexpr uintptr_t kHugePage = 2 << 20;
  constexpr uintptr_t kLeast = 2 * kHugePage;
  if (bytes < kLeast) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const auto end = begin + bytes;
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t last = end / kHugePage * kHugePage;
  // Without effect where the system has none.
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace fusebox
