// SPDX-License-Identifier: Apache-2.0
// The GEMM of f32 with packed weights: C[m][n] = clamp(start[m][n] + sum over k of A[m][k] * B[n][k]).
//
// The outputs n lie in panels of as many as a vector has lanes, four panels to a group:
// [group][k][panel][lane]. The last group has the remaining panels. Lanes beyond the last output are zeros.
// A sum adds its products in the order of k for any tiling, so that results depend on neither threads nor M.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "plugins/math/gemm/input.h"
#include "plugins/math/simd/targets.h"

namespace fusebox::math {

inline constexpr size_t kGroupPanels = 4;

struct F32Layout {
  size_t lanes, n, k;

  size_t panels() const { return (n + lanes - 1) / lanes; }
  size_t padded() const { return panels() * lanes; }  // n, rounded up to whole panels
  size_t groups() const { return (panels() + kGroupPanels - 1) / kGroupPanels; }
  size_t elements() const { return padded() * k; }
};

// Packs row `output` of B, [k]. The lanes beyond the last output must hold zeros already.
void PackF32Row(const F32Layout& layout, size_t output, const float* row, float* to);
// Packs all of B, [n][k] or, transposed, [k][n], and writes the zeros.
void PackF32(const F32Layout& layout, const float* b, float* to);
void PackF32Transposed(const F32Layout& layout, const float* b, float* to);

// All rows of A are multiplied by its weights; their results begin and end alike.
struct F32Task {
  F32Layout layout;
  const float* weights;
  const float* start = nullptr;  // n values a row; null: zeros
  size_t start_stride = 0;       // 0: the same values for every row
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();  // NaN stays NaN
};

struct F32Kernels {
  size_t lanes;
  // Groups [begin, end) only. Rows of C may be the task's `start`.
  void (*multiply)(const F32Task&, const Rows<float>&, size_t begin, size_t end);
};

// The code for every instruction set that this machine has, best first.
std::vector<const F32Kernels*> AllF32Kernels();
using F32Choice = SimdChoice<F32Kernels, AllF32Kernels>;
inline const F32Kernels& BestF32Kernels() { return F32Choice::Best(); }

}  // namespace fusebox::math
