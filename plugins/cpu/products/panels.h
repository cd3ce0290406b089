// SPDX-License-Identifier: Apache-2.0
// Weights of f32 as panels (gemm.h) of one or more matrices.
#pragma once

#include <cstdint>

#include <fusebox/kernel.hpp>
#include <fusebox/weights.hpp>

#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/products/gemm.h"

namespace fusebox::cpu {

// Matrices [columns, depth], one per group. With `taps`, the one matrix is stored as [columns / taps, taps,
// depth] and packed as [taps, columns / taps, depth].
struct PanelShape {
  int64_t columns, depth, groups = 1, taps = 1;

  int64_t each() const { return Product(PanelElements(columns, 1), depth); }  // elements of a packed matrix
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
