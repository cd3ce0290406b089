// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/models/vision_parts.h"

namespace fusebox::test_models {
namespace {

Ref Area(Expressions& e, const BoxColumns& b) {
  return e.Like("Mul", e.Like("Sub", b.bottom, b.top), e.Like("Sub", b.right, b.left));
}

// Intersection over union of every box with one; 0 if either has no area.
Ref Overlap(Expressions& e, const BoxColumns& all, const Ref& areas, const BoxColumns& one) {
  const auto side = [&](const Ref& low, const Ref& low_of_one, const Ref& high, const Ref& high_of_one) {
    const Ref length =
        e.Like("Sub", e.Like("Minimum", high, high_of_one), e.Like("Maximum", low, low_of_one));
    return e.Like("Maximum", length, e.Constant(0.0F));
  };
  const Ref shared = e.Like("Mul", side(all.top, one.top, all.bottom, one.bottom),
                            side(all.left, one.left, all.right, one.right));
  const Ref area = Area(e, one);
  const Ref together = e.Like("Sub", e.Like("AddV2", areas, area), shared);
  const Ref both = e.Like("LogicalAnd", e.Like("Greater", areas, e.Constant(0.0F)),
                          e.Like("Greater", area, e.Constant(0.0F)));
  return e.Select(both, e.Like("RealDiv", shared, together), e.Constant(0.0F));
}

}  // namespace

Ref Expressions::Reshaped(const Ref& x, const std::vector<int32_t>& shape) {
  return f.Op("Reshape", {x, f.Const(Ints(shape), "shape")},
              Shape(std::vector<int64_t>(shape.begin(), shape.end())));
}

std::vector<Ref> Expressions::Columns(const Ref& x) {
  const auto count = static_cast<size_t>(x.shape[1]);
  return f.Ops("Unpack", {x}, std::vector<Shape>(count, Shape{x.shape[0]}),
               {Attr("num", x.shape[1]), Attr("axis", 1)});
}

Suppressed SuppressGreedily(Expressions& e, const BoxColumns& boxes, const Ref& scores, const Ref& candidate,
                            const Ref& threshold, std::string_view hides, int rounds) {
  // Below the score of every candidate.
  const Ref gone = e.Constant(-3e38F);
  const Ref least = e.Constant(-2e38F);
  const Ref indices = e.f.Const(IntsFrom(0, scores.shape), "indices");
  const Ref areas = Area(e, boxes);
  Ref left = e.Select(candidate, scores, gone);
  Suppressed out;
  for (int k = 0; k < rounds; ++k) {
    const Ref best = e.Reduced("ArgMax", left, 0, kScalar, {Attr("output_type", tf::DT_INT32)});
    const Ref found =
        e.Like("Greater", e.Reduced("Max", left, 0, kScalar, {Attr("keep_dims", false)}), least);
    out.at.push_back(e.Select(found, best, e.Constant(0)));
    out.found.push_back(found);
    const auto of_best = [&](const Ref& column) { return e.At(column, best, kScalar); };
    const BoxColumns one = {of_best(boxes.top), of_best(boxes.left), of_best(boxes.bottom),
                            of_best(boxes.right)};
    const Ref hidden = e.Like("LogicalOr", e.Like(hides, Overlap(e, boxes, areas, one), threshold),
                              e.Like("Equal", indices, best));
    left = e.Select(hidden, gone, left);
  }
  return out;
}

}  // namespace fusebox::test_models
