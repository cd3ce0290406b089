// SPDX-License-Identifier: Apache-2.0
// The loops of a reduction over some dims of a tensor.
#pragma once

#include <array>

#include "plugins/cpu/base/shape.h"

namespace fusebox::cpu {

// The reduced dims. A scalar has none, whatever the list contains.
inline std::array<bool, kMaxRank> ReducedDims(const Node& n, int rank) {
  std::array<bool, kMaxRank> reduced{};
  const Tensor axes = n.in(1);
  if (axes.rank() > 1)
    Fail("expected a scalar or a list, got rank " + std::to_string(axes.rank()), Operand(1));
  if (rank == 0) return reduced;
  for (int64_t i = 0; i < axes.count(); ++i) reduced[static_cast<size_t>(Axis(IntAt(axes, i), rank))] = true;
  return reduced;
}

// A reduction with adjacent dims merged: kept and reduced outer dims, and an innermost run of either kind.
struct ReducePlan {
  Shape kept, kept_strides, folded, folded_strides;
  int64_t inner = 1;
  bool inner_folded = true;
  int64_t kept_count = 1;    // elements of the outer dims that are kept
  int64_t folded_count = 1;  // elements of the outer dims that are folded
};

// Returns the number of values of each result.
inline int64_t Folds(const ReducePlan& plan) {
  return plan.folded_count * (plan.inner_folded ? plan.inner : 1);
}

inline ReducePlan PlanReduce(const Node& n) {
  const Shape in(n.in(0));
  const std::array<bool, kMaxRank> reduced = ReducedDims(n, in.rank());
  ReducePlan plan;
  int i = in.rank();
  if (i > 0) plan.inner_folded = reduced[static_cast<size_t>(i - 1)];
  for (; i > 0 && reduced[static_cast<size_t>(i - 1)] == plan.inner_folded; --i) plan.inner *= in[i - 1];
  const Shape strides = Strides(in);
  for (int d = 0; d < i; ++d) {
    (reduced[static_cast<size_t>(d)] ? plan.folded : plan.kept).push_back(in[d]);
    (reduced[static_cast<size_t>(d)] ? plan.folded_strides : plan.kept_strides).push_back(strides[d]);
  }
  plan.kept_count = Count(plan.kept);
  plan.folded_count = Count(plan.folded);
  return plan;
}

}  // namespace fusebox::cpu
