// SPDX-License-Identifier: Apache-2.0
// Weights of f32 packed as panels (plugins/math/gemm/f32.h) of one or more matrices.
#pragma once

#include <cstdint>

#include <fusebox/kernel.hpp>
#include <fusebox/weights.hpp>

#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/products/gemm.h"
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
// The product with packed `b`: its b and ldb are not read.
void MultiplyParallel(const fbx_host* host, const RowProduct<float>& product, const float* panels);

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
