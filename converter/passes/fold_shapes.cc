// SPDX-License-Identifier: Apache-2.0
// What is known of a shape that is not wholly known: one dimension picked out of SHAPE is a constant when that dimension is, and
// a tensor made to the sizes PACK(n, 8) has its second dimension known.
#include <algorithm>

#include "converter/passes/rewrite.h"

namespace fusebox::converter {
namespace {

std::vector<int64_t> Integers(const Value& v) {
  std::vector<int64_t> out;
  if (v.is_const() && v.type.dtype == DType::kI32)
    out.assign(v.data.As<int32_t>().begin(), v.data.As<int32_t>().end());
  if (v.is_const() && v.type.dtype == DType::kI64)
    out.assign(v.data.As<int64_t>().begin(), v.data.As<int64_t>().end());
  return out;
}

// A slice of SHAPE(x) with stride one, as constants; nothing when a dimension in it is open.
std::optional<std::vector<int32_t>> PickedDims(const Function& f, const Uses& uses, const Node& slice) {
  const Node* shape = uses.producer(slice.operands[0]);
  if (!shape || !shape->is(Op::kShape) || f.value(slice.results[0]).type.dtype != DType::kI32)
    return std::nullopt;
  const Shape& of = f.value(shape->operands[0]).type.shape;
  const auto begin = Integers(f.value(slice.operands[1])), end = Integers(f.value(slice.operands[2]));
  const auto stride = Integers(f.value(slice.operands[3]));
  if (!of.ranked() || begin.size() != 1 || end.size() != 1 || stride != std::vector<int64_t>{1})
    return std::nullopt;
  const int64_t rank = of.rank();
  const auto at = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const bool one = slice.attrs.i64("shrink_axis_mask", 0) & 1;
  const int64_t from = !one && slice.attrs.i64("begin_mask", 0) & 1 ? 0 : at(begin[0]);
  const int64_t to = one ? from + 1 : slice.attrs.i64("end_mask", 0) & 1 ? rank : at(end[0]);
  if (from >= rank || slice.attrs.i64("new_axis_mask", 0) || slice.attrs.i64("ellipsis_mask", 0))
    return std::nullopt;
  std::vector<int32_t> dims;
  for (int64_t i = from; i < std::min(to, rank); ++i) {
    if (of[static_cast<size_t>(i)] < 0 || of[static_cast<size_t>(i)] > INT32_MAX) return std::nullopt;
    dims.push_back(static_cast<int32_t>(of[static_cast<size_t>(i)]));
  }
  return dims;
}

// Dimensions that the sizes operand of FILL, RESHAPE or BROADCAST_TO tells: its parts may be constant where the whole is not.
bool RefineFromSizes(Function& f, const Uses& uses, const Node& node, ValueId sizes) {
  const Node* pack = sizes == kNoValue ? nullptr : uses.producer(sizes);
  if (!pack || !pack->is(Op::kPack)) return false;
  Type& type = f.value(node.results[0]).type;
  if (!type.shape.ranked()) type.shape = Shape(std::vector<int64_t>(pack->operands.size(), Shape::kUnknown));
  if (type.shape.rank() != static_cast<int>(pack->operands.size())) return false;
  bool better = false;
  for (size_t i = 0; i < pack->operands.size(); ++i) {
    const auto known = Integers(f.value(pack->operands[i]));
    if (known.size() != 1 || known[0] < 0 || type.shape[i] == known[0]) continue;
    type.shape.dims()[i] = known[0];
    better = true;
  }
  return better;
}

}  // namespace

int FoldShapes(Function& f) {
  const Uses uses(f);
  int changed = 0;
  for (auto& node : f.nodes) {
    if (node->is(Op::kFill)) changed += RefineFromSizes(f, uses, *node, node->operands[0]);
    const bool sized = (node->is(Op::kReshape) || node->is(Op::kBroadcastTo)) && node->operands.size() == 2;
    if (sized) changed += RefineFromSizes(f, uses, *node, node->operands[1]);
    if (!node->is(Op::kStridedSlice)) continue;
    const auto dims = PickedDims(f, uses, *node);
    if (!dims) continue;
    const bool scalar = node->attrs.i64("shrink_axis_mask", 0) & 1;
    const Shape shape = scalar ? Shape(std::vector<int64_t>{}) : Shape{static_cast<int64_t>(dims->size())};
    f.ReplaceUses(node->results[0], f.AddConst(DType::kI32, shape, *dims, f.value(node->results[0]).name));
    node.reset();
    ++changed;
    break;  // what is known of uses is out of date
  }
  f.Sweep();
  return changed;
}

}  // namespace fusebox::converter
