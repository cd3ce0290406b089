// SPDX-License-Identifier: Apache-2.0
// odml.l2_norm (LiteRT): x * rsqrt(sum(x * x) + epsilon) over the last dimension.
//
// Operand: x f32 [..., n]. Attributes: epsilon, axis (the last). Result: as x.
#pragma once

#include <cmath>

#include "plugins/nn/norms/rows.h"

namespace fusebox::nn {

struct L2NormRule {
  static constexpr std::string_view id = "fusebox.l2_norm";
  static constexpr std::string_view implements = "odml.l2_norm";

  static void match(const Site& s) {
    s.arity(1, 1);
    RequireRows(s);
    s.attr("epsilon");
    const int64_t axis = s.attrs().i64("axis", -1);
    s.require(axis == -1 || axis == s.in(0).rank() - 1, "AXIS", "is not the last dimension", "attr axis");
    RequireNoOwnWeights(s);
  }
  static void rewrite(const Site& s, Build& b) {
    b.result(0, b.custom("fusebox.l2_norm", {b.in(0)}).attr("epsilon", s.attrs().f64("epsilon"))[0]);
  }
};

class L2Norm {
 public:
  static constexpr std::string_view custom = "fusebox.l2_norm";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    n.arity(1, 1);
    RequireRows(n);
  }
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  explicit L2Norm(const Node& n) : epsilon_(static_cast<float>(n.attrs().f64("epsilon"))) {}

  void invoke(const Node& n) const {
    ForRows(n, [&](const float* x, float* y, size_t size) {
      const float factor = 1 / std::sqrt(SumOfSquares(x, size) + epsilon_);
      for (size_t i = 0; i < size; ++i) y[i] = x[i] * factor;
    });
  }

 private:
  float epsilon_;
};

}  // namespace fusebox::nn
