// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/ops/narrow.h"

#include <algorithm>

#include "plugins/math/simd/cpu.h"

namespace fusebox::xnnpack {

int64_t KernelColumns() {
#if defined(__x86_64__)
  if (FUSEBOX_CPU_HAS(AVX512F)) return 32;
  if (FUSEBOX_CPU_HAS(AVX)) return 16;
#endif
  return 0;
}

int64_t PixelsAtOnce(int64_t results, int64_t row, int64_t filter_width, int64_t stride) {
  if (results <= 0 || row <= 0) return 1;
  // More take little less time, but more memory.
  constexpr int64_t kMostPixels = 8;
  int64_t pixels = std::clamp<int64_t>(KernelColumns() / results, 1, kMostPixels);
  while (row % pixels != 0) --pixels;
  // Measured: the work is proportional to the columns of the filter; the result is copied once more.
  return 8 * (filter_width + stride * (pixels - 1)) <= 7 * filter_width * pixels ? pixels : 1;
}

// Measured: XNNPACK's kernels of two columns take less time than one of 32 for up to four.
bool IsBetterAsProduct(int64_t columns) { return 8 * columns <= KernelColumns(); }

// Products of few columns use kernels of two columns without the newer instructions, a third of the speed;
// convolutions do not. Measured: below, the copies around the convolution cost more than it saves.
bool IsBetterAsConvolution(int64_t columns, int64_t inputs) {
  constexpr int64_t kLeastColumns = 10;
  constexpr int64_t kLeastInputs = 1024;
  return columns >= kLeastColumns && columns < KernelColumns() && inputs >= kLeastInputs;
}

}  // namespace fusebox::xnnpack
