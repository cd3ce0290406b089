// SPDX-License-Identifier: Apache-2.0
// RESHAPE, SQUEEZE and EXPAND_DIMS: those in a row are one, and what is done to each element is done before
// them, next to the op that may take it in.
#include <algorithm>

#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

bool IsReshape(const Node& node) {
  return node.is(Op::kReshape) || node.is(Op::kSqueeze) || node.is(Op::kExpandDims);
}

// A shape with one open dimension at most, as RESHAPE takes it; the open one is what the number of elements
// leaves.
std::optional<std::vector<int64_t>> Target(const Shape& shape) {
  if (!shape.ranked()) return std::nullopt;
  if (shape.is_static()) return shape.dims();
  const auto open = std::ranges::count_if(shape.dims(), [](int64_t d) { return d < 0; });
  const bool empty = std::ranges::any_of(shape.dims(), [](int64_t d) { return d == 0; });
  return open == 1 && !empty ? std::optional(shape.dims()) : std::nullopt;
}

// Two shapes of the same number of elements that are written alike are the same when one dimension at most is
// open.
bool Same(const Shape& a, const Shape& b) { return a == b && Target(a).has_value(); }

bool ReshapesInARow(Edit& e, Node& node) {
  const ValueId middle = node.operands[0];
  Node* const before = e.producer(middle);
  if (!before || !IsReshape(*before)) return false;
  const ValueId x = before->operands[0];
  if (e.is_const(x)) return false;
  if (Same(e.shape(x), e.shape(node.results[0]))) {
    e.Replace(node, x);
    return true;
  }
  // SQUEEZE and EXPAND_DIMS of the same dimension, whatever the others are.
  if (node.is(Op::kExpandDims) && before->is(Op::kSqueeze)) {
    const auto axis = e.Ints(node.operands[1]);
    auto gone = before->attrs.i64s("squeeze_dims");
    const int rank = e.rank(x);
    if (axis && axis->size() == 1 && gone.size() == 1 && rank > 0) {
      const auto at = [&](int64_t i) { return i < 0 ? i + rank : i; };
      if (at((*axis)[0]) == at(gone[0])) {
        e.Replace(node, x);
        return true;
      }
    }
  }
  if (node.is(Op::kReshape) && e.Ints(node.operands.size() > 1 ? node.operands[1] : kNoValue)) {
    e.SetOperand(node, 0, x);
    return true;
  }
  const auto target = Target(e.shape(node.results[0]));
  if (!target) return false;
  e.Replace(node, e.Reshape(x, *target));
  return true;
}

// Replaces computed sizes by constants where the type of the result has them.
bool ConstantTarget(Edit& e, Node& node) {
  if (node.operands.size() != 2 || e.is_const(node.operands[1]) || e.is_const(node.operands[0])) return false;
  const auto target = Target(e.shape(node.results[0]));
  if (!target) return false;
  e.SetOperand(node, 1, e.I32(*target));
  return true;
}

// STRIDED_SLICE that takes all there is, in order: dimensions of one come or go.
bool WholeSlice(Edit& e, Node& node) {
  const ValueId x = node.operands[0];
  const auto before = e.shape(x).element_count();
  const auto after = e.shape(node.results[0]).element_count();
  const auto strides = e.Ints(node.operands.size() > 3 ? node.operands[3] : kNoValue);
  if (e.is_const(x) || !before || !after || *before < 1 || before != after || !strides) return false;
  if (std::ranges::any_of(*strides, [](int64_t stride) { return stride < 1; })) return false;
  e.Replace(node, e.Reshape(x, e.shape(node.results[0]).dims()));
  return true;
}
constexpr Rule kWholeSlice = {Op::kStridedSlice, WholeSlice};

// Ops that elementwise ones can be merged into.
bool SupportsMerge(const Node& node) {
  return Has(node.op, kArithmetic) || Info(node.op).quantizes == Quantizes::kWeighted;
}

// ADD(RESHAPE(conv), c): RESHAPE(ADD(conv, c)), where c is one number or one per element of a last dimension
// that stays.
bool Hoist(Edit& e, Node& node) {
  size_t side = 0;
  if (node.operands.size() == 2) side = e.is_const(node.operands[0]) ? 1 : 0;
  Node* const reshape = e.producer(node.operands[side]);
  if (!reshape || !IsReshape(*reshape) || !e.read_once(node.operands[side])) return false;
  const ValueId x = reshape->operands[0];
  Node* const before = e.producer(x);
  if (!before || !SupportsMerge(*before) || HasActivation(*before) || !e.read_once(x) || !e.is_f32(x))
    return false;
  const Shape from = e.shape(x);
  const Shape to = e.shape(node.operands[side]);
  if (from.rank() < 1 || to.rank() < 1 || to != e.shape(node.results[0])) return false;
  ValueIds operands = node.operands;
  operands[side] = x;
  if (operands.size() == 2) {
    const auto c = e.Floats(operands[1 - side]);
    const Shape shape = e.shape(operands[1 - side]);
    if (!c || shape.rank() > to.rank()) return false;
    if (c->size() == 1) {
      operands[1 - side] = e.F32(Shape::Scalar(), *c);
    } else {
      const auto channels = static_cast<int64_t>(c->size());
      if (shape.dims().back() != channels || from.dims().back() != channels || to.dims().back() != channels)
        return false;
      operands[1 - side] = e.F32(Shape{channels}, *c);
    }
  }
  const ValueId y = e.Value(node.op, std::move(operands), node.attrs);
  ValueIds around = reshape->operands;
  around[0] = y;
  e.Replace(node, e.Value(reshape->op, std::move(around), reshape->attrs));
  return true;
}

}  // namespace

std::span<const Rule> ReshapeRules() {
  static constexpr Rule kRules[] = {
      {Op::kReshape, ReshapesInARow}, {Op::kSqueeze, Op::kExpandDims, ReshapesInARow},
      {Op::kReshape, ConstantTarget}, kWholeSlice,
      {kArithmetic, Hoist},           {kActivation, Hoist},
  };
  return kRules;
}

}  // namespace fusebox::converter::optimize
