// SPDX-License-Identifier: Apache-2.0
// Building blocks for the bodies of vision models.
#pragma once

#include <vector>

#include "models/saved_model/saved_model_builder.h"

namespace fusebox::test_models {

using namespace models;

// Short notation for nodes of a function; shapes default to the shape of the first operand.
class Expressions {
 public:
  explicit Expressions(FunctionBuilder& f) : f(f) {}

  Ref Constant(float value) { return f.Const(Float(value), "value"); }
  Ref Constant(int32_t value) { return f.Const(Int(value), "value"); }
  Ref Like(std::string_view op, const Ref& a, const Ref& b) { return f.Op(op, {a, b}, Wider(a, b)); }
  Ref Like(std::string_view op, const Ref& a) { return f.Op(op, {a}, a.shape); }
  Ref Select(const Ref& condition, const Ref& yes, const Ref& no) {
    return f.Op("SelectV2", {condition, yes, no}, condition.shape);
  }
  Ref Reduced(std::string_view op, const Ref& x, int32_t axis, const Shape& shape,
              const std::vector<Attr>& attrs = {}) {
    return f.Op(op, {x, Constant(axis)}, shape, attrs);
  }
  Ref Reshaped(const Ref& x, const std::vector<int32_t>& shape);
  Ref Cast(const Ref& x, tf::DataType to) { return f.Op("Cast", {x}, x.shape, {Attr("DstT", to)}); }
  // x[at] along the first dimension.
  Ref At(const Ref& x, const Ref& at, const Shape& shape) {
    return f.Op("GatherV2", {x, at, Constant(0)}, shape, {Attr("batch_dims", 0)});
  }
  // Columns of [n, c], each [n].
  std::vector<Ref> Columns(const Ref& x);

  FunctionBuilder& f;

 private:
  static Shape Wider(const Ref& a, const Ref& b) {
    return a.shape.dims().size() >= b.shape.dims().size() ? a.shape : b.shape;
  }
};

// Boxes as columns [n], top <= bottom and left <= right.
struct BoxColumns {
  Ref top, left, bottom, right;
};

// Greedy suppression, unrolled: takes the best remaining box `rounds` times. at[k] is its index (0 if none is
// left), found[k] whether there was one. `candidate` [n] marks valid scores. A box is removed if its overlap
// with a taken box compares to the threshold by `hides` ("Greater" or "GreaterEqual").
struct Suppressed {
  std::vector<Ref> at, found;
};
Suppressed SuppressGreedily(Expressions& e, const BoxColumns& boxes, const Ref& scores, const Ref& candidate,
                            const Ref& threshold, std::string_view hides, int rounds);

}  // namespace fusebox::test_models
