// SPDX-License-Identifier: Apache-2.0
// Weights of f32 packed as panels (plugins/math/gemm/f32.h) of one or more matrices.
#pragma once

#include <algorithm>
#include <cstdint>

#include <fusebox/kernel.hpp>
#include <fusebox/weights.hpp>

#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/products/dots.h"
#include "plugins/math/gemm/run.h"

namespace fusebox::cpu {

// From some rows on, packing pays also for weights that are read as they are.
inline constexpr int64_t kLeastPanelRows = 16;

// Returns the layout of a packed matrix [n, k] for the code that this machine runs.
inline math::F32Layout PanelLayout(int64_t n, int64_t k) {
  return {math::BestF32Kernels().lanes, static_cast<size_t>(n), static_cast<size_t>(k)};
}
// Elements of the packed matrix. Throws if they are too many for memory.
inline int64_t PanelElements(int64_t n, int64_t k) {
  return Product(static_cast<int64_t>(PanelLayout(n, 0).padded()), k);
}
// Returns whether dot products take fewer steps than packed weights: few outputs leave most lanes of a panel
// empty. At least `segment` elements of a row lie together.
inline bool DotsPay(int64_t n, int64_t k, int64_t segment) {
  constexpr int64_t kLanes = 8;
  constexpr int64_t kTotal = 8;  // steps for the sum of the lanes
  const int64_t together = std::clamp<int64_t>(segment, 1, std::max<int64_t>(1, k));
  const int64_t steps = k / together * ((together + kLanes - 1) / kLanes) + kTotal;
  return Product(n, steps) < Product(k, static_cast<int64_t>(PanelLayout(n, k).panels()));
}
// Products whose `b` is packed: on this thread, and of a matrix on the host's threads.
void MultiplyPanels(const DotTask<float>& task, const math::Rows<float>& rows);
void MultiplyPanels(const fbx_host* host, const DotProduct<float>& product);

// Matrices [n][k], one per group. With `taps`, the one matrix is stored as [n / taps][taps][k] and packed as
// [taps][n / taps][k].
struct PanelShape {
  int64_t n;
  int64_t k;
  int64_t groups = 1;
  int64_t taps = 1;
  bool transposed = false;  // stored as [k][n]

  math::F32Layout layout() const { return PanelLayout(n, k); }
  int64_t each() const { return PanelElements(n, k); }  // elements of a packed matrix
  int64_t elements() const { return Product(each(), groups); }
};
void PackPanels(const float* weights, const PanelShape& shape, float* to);

// Constant weights, packed once: in init for a store, otherwise by the first use.
class KeptPanels {
 public:
  // `used`: they will surely be used.
  KeptPanels(const Node& n, uint32_t operand, const PanelShape& shape, bool used = true)
      : operand_(operand), shape_(shape) {
    if (used && keeps_weights(n.host())) Get(n);
  }
  const PanelShape& shape() const { return shape_; }
  // Any thread.
  const float* Get(const Node& n) const;

 private:
  uint32_t operand_;
  PanelShape shape_;
  LatePackedWeights packed_;
};

}  // namespace fusebox::cpu
