// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/emitter.h"

#include <algorithm>

namespace fusebox::keras {

void Emitter::Fail(Error error) {
  if (ok()) status_ = std::unexpected(std::move(error));
}

std::vector<ValueId> Emitter::Ops(std::string_view op, std::vector<ValueId> operands, Attrs attrs,
                                  size_t results) {
  std::vector<ValueId> none(results, kNoValue);
  if (!ok()) return none;
  fusebox::Node node;
  node.op = fusebox::Op::kOpaque;
  node.name = op;
  node.operands = std::move(operands);
  node.attrs = std::move(attrs);
  node.location = {layer_.empty() ? node.name : layer_ + "/" + node.name, layer_};
  node.results = none;

  t_.SetSource(node);
  const size_t before = t_.mark();
  const Status done = converter::TranslateSource(t_);
  const bool all = std::ranges::none_of(t_.results(), [](ValueId v) { return v == kNoValue; });
  if (done && all) return t_.results();
  t_.Rollback(before);
  fusebox::Node& made =
      t_.EmitTyped(node.op, std::move(node.operands), std::vector<Type>(results), std::move(node.attrs));
  made.name = op;
  return made.results;
}

ValueId Emitter::Op(std::string_view op, std::vector<ValueId> operands, Attrs attrs) {
  return Ops(op, std::move(operands), std::move(attrs), 1)[0];
}

std::vector<ValueId> Emitter::Node(fusebox::Op op, std::string name, std::vector<ValueId> operands,
                                   std::vector<Type> types, Attrs attrs, std::string body) {
  if (!ok()) return std::vector<ValueId>(types.size(), kNoValue);
  t_.SetLocation({layer_, layer_});
  fusebox::Node& made = t_.EmitTyped(op, std::move(operands), std::move(types), std::move(attrs));
  made.name = std::move(name);
  made.body = std::move(body);
  if (made.is(fusebox::Op::kStablehloComposite)) made.version = 1;
  return made.results;
}

ValueId Emitter::Scalar(DType dtype, double value) {
  if (dtype == DType::kI32) return I32(static_cast<int64_t>(value));
  if (dtype != DType::kF32 && dtype != DType::kNone) Refuse("a constant of " + std::string(Name(dtype)));
  return F32(value);
}

const Type& Emitter::type(ValueId v) const {
  static const Type none;
  return v == kNoValue ? none : t_.type(v);
}

int Emitter::rank(ValueId v) {
  if (!ok()) return 0;
  if (!type(v).shape.ranked()) Refuse("the rank of what it is called with is not known");
  return std::max(type(v).shape.rank(), 0);
}

int64_t Emitter::dim(ValueId v, int axis) {
  const int n = rank(v);
  const int at = axis < 0 ? axis + n : axis;
  if (!ok()) return Shape::kUnknown;
  if (at < 0 || at >= n) {
    Reject("it has no dimension " + std::to_string(axis) + ": its input is " + ToString(type(v)));
    return Shape::kUnknown;
  }
  return type(v).shape[static_cast<size_t>(at)];
}

Extent Emitter::size(ValueId v, int axis) {
  const int at = axis < 0 ? axis + rank(v) : axis;
  return {dim(v, axis), v, at};
}

ValueId Emitter::SizeValue(const Extent& extent) {
  if (extent.size >= 0 || extent.source == kNoValue) return I32(extent.size);
  const ValueId shape = Op("Shape", {extent.source}, MakeAttrs("out_type", DType::kI32));
  return Op("StridedSlice", {shape, I32s({extent.axis}), I32s({extent.axis + 1}), I32s({1})},
            MakeAttrs("shrink_axis_mask", 1));
}

ValueId Emitter::ShapeValue(const std::vector<Extent>& shape) {
  const bool known =
      std::ranges::all_of(shape, [](const Extent& e) { return e.size >= 0 || e.source == kNoValue; });
  if (known) {
    std::vector<int64_t> dims;
    for (const Extent& e : shape) dims.push_back(e.size);
    return I32s(dims);
  }
  std::vector<ValueId> sizes;
  for (const Extent& e : shape) sizes.push_back(SizeValue(e));
  return Op("Pack", sizes);
}

ValueId Emitter::Reshape(ValueId v, const std::vector<Extent>& shape) {
  std::vector<int64_t> dims;
  for (const Extent& e : shape) dims.push_back(e.size);
  if (std::ranges::count(dims, Shape::kUnknown) <= 1) return Op("Reshape", {v, I32s(dims)});
  const ValueId made = Op("Reshape", {v, ShapeValue(shape)});
  // Sizes that are known stay known, also where the whole shape is computed.
  if (ok() && !type(made).shape.ranked()) t_.f().value(made).type = {type(v).dtype, Shape(dims)};
  return made;
}

ValueId Emitter::Transpose(ValueId v, const std::vector<int64_t>& perm) {
  constexpr size_t kMostDimensions = 5;  // in versions of TFLite before 2.10
  for (size_t at = perm.size(); ok() && perm.size() > kMostDimensions && at-- > 1;) {
    const int64_t left = perm[at - 1];
    if (perm[at] == left + 1 && dim(v, static_cast<int>(left)) >= 0 &&
        dim(v, static_cast<int>(left) + 1) >= 0)
      return TransposeMerged(v, perm, at - 1);
  }
  return Op("Transpose", {v, I32s(perm)});
}

ValueId Emitter::TransposeMerged(ValueId v, const std::vector<int64_t>& perm, size_t at) {
  const auto left = static_cast<size_t>(perm[at]);
  std::vector<Extent> merged;
  std::vector<Extent> transposed;
  for (size_t i = 0; i < perm.size(); ++i) {
    transposed.push_back(size(v, static_cast<int>(perm[i])));
    if (i != left + 1) merged.push_back(size(v, static_cast<int>(i)));
  }
  merged[left].size *= dim(v, static_cast<int>(left) + 1);
  std::vector<int64_t> order;
  for (size_t i = 0; i < perm.size(); ++i)
    if (i != at + 1) order.push_back(perm[i] > perm[at] ? perm[i] - 1 : perm[i]);
  return Reshape(Transpose(Reshape(v, merged), order), transposed);
}

ValueId Emitter::Slice(ValueId v, int axis, int64_t begin, int64_t end) {
  const auto n = static_cast<size_t>(rank(v));
  if (!ok()) return kNoValue;
  const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int>(n) : axis);
  std::vector<int64_t> from(n, 0);
  std::vector<int64_t> to(n, 0);
  std::vector<int64_t> step(n, 1);
  from[at] = begin;
  to[at] = end;
  const int64_t all = (int64_t{1} << n) - 1;
  const int64_t bit = int64_t{1} << at;
  return Op("StridedSlice", {v, I32s(from), I32s(to), I32s(step)},
            MakeAttrs("begin_mask", all & ~bit, "end_mask", end == 0 ? all : all & ~bit));
}

ValueId Emitter::Cast(ValueId v, DType to) {
  if (!ok() || dtype(v) == to) return v;
  return Op("Cast", {v}, MakeAttrs("DstT", to));
}

ValueId Emitter::Concat(std::vector<ValueId> parts, int axis) {
  if (parts.size() == 1) return parts[0];
  parts.push_back(I32(axis));
  return Op("ConcatV2", std::move(parts));
}

}  // namespace fusebox::keras
