// SPDX-License-Identifier: Apache-2.0
// odml.rms_norm (LiteRT, litert-torch): x * rsqrt(mean(x * x) + epsilon) * scale over the last dimension.
//
// Operands: x f32 [..., n], scale f32 [n]. Attribute: epsilon. Result: as x. Written by F.rms_norm with
// StableHLOCompositeBuilder and by the recognizer rms-norm of the converter.
#pragma once

#include <cmath>

#include "plugins/nn/norms/rows.h"

namespace fusebox::nn {

struct RmsNormRule {
  static constexpr std::string_view id = "fusebox.rms_norm";
  static constexpr std::string_view implements = "odml.rms_norm";

  static void match(const Site& s) {
    s.arity(2, 1);
    RequireRows(s);
    RequirePerFeature(s, 1);
    s.attr("epsilon");
    RequireNoOwnWeights(s);
  }
  static void rewrite(const Site& s, Build& b) {
    b.result(0,
             b.custom("fusebox.rms_norm", {b.in(0), b.in(1)}).attr("epsilon", s.attrs().f64("epsilon"))[0]);
  }
};

class RmsNorm {
 public:
  static constexpr std::string_view custom = "fusebox.rms_norm";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    n.arity(2, 1);
    RequireRows(n);
    n.operand(1, FBX_F32, 1);
  }
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  explicit RmsNorm(const Node& n) : epsilon_(static_cast<float>(n.attrs().f64("epsilon"))) {}

  void invoke(const Node& n) const {
    if (n.in(1).count() != n.in(0).dim(-1))
      throw Error{FBX_INVALID, "does not have the size of the last dimension of operand 0", "operand 1"};
    const float* const scale = n.in(1).data<const float>();
    ForRows(n, [&](const float* x, float* y, size_t size) {
      const float factor = 1 / std::sqrt(SumOfSquares(x, size) / static_cast<float>(size) + epsilon_);
      for (size_t i = 0; i < size; ++i) y[i] = x[i] * factor * scale[i];
    });
  }

 private:
  float epsilon_;
};

}  // namespace fusebox::nn
