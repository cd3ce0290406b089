// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding, as odml.rope (litert-torch) and custom_call.rotary_positional_embedding: the
// feature i of the first half and the feature i of the second half are rotated by an angle that is
// proportional to the position.
//
// Operands of fusebox.rope: x f32 [.., T, .., H], H even; positions i32 or i64 [.., T], of which the first T
// count; rates f32 [H/2]. Result: as x. Attributes: axis, the dimension of T; divides: angles are position /
// rate instead of position * rate. Angles are computed in f64, cosines and sines once per position.
#pragma once

#include <fusebox/kernel.hpp>
#include <fusebox/rule.hpp>

namespace fusebox::nn {

using namespace sdk;

// The attributes of the composite do not determine the dimension of the positions, and the body's rates are
// rounded otherwise than max_timescale: the rule reads both from the body.
struct RopeRule {
  static constexpr std::string_view id = "fusebox.rope";
  static constexpr std::string_view implements = "odml.rope";  // the manifest lists all names
  static void match(const Site& s);
  static void rewrite(const Site& s, Build& b);
};

// Declines operands that neither the rule nor the kernel accepts. `At`: a Site or a Node.
template <class At>
void RequireRotatable(const At& at) {
  const Tensor positions = at.in(1);
  at.require(positions.present() && (positions.dtype() == FBX_I32 || positions.dtype() == FBX_I64), "DTYPE",
             "is neither i32 nor i64", "operand 1");
  at.require(positions.rank() >= 1, "RANK", "is a scalar, or has an unknown rank", "operand 1");
  at.require(at.in(0).rank() >= 2, "RANK", "has an unknown rank, or one below 2", "operand 0");
}

class Rope {
 public:
  static constexpr std::string_view custom = "fusebox.rope";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  explicit Rope(const Node& n);
  uint32_t prepare(const Node& n, Plan& plan) const;  // the slot of the cosines and sines
  void invoke(const Node& n, uint32_t slot) const;

 private:
  int axis_;
  bool divides_;
};

}  // namespace fusebox::nn
