// SPDX-License-Identifier: Apache-2.0
#include "host/graph/rewriter.h"

#include <algorithm>
#include <numeric>

namespace fusebox {
namespace {

size_t Index(ValueId v) { return static_cast<size_t>(v); }

template <class T>
T& Slot(std::vector<T>& all, ValueId v, T fill = {}) {
  if (Index(v) >= all.size()) all.resize(Index(v) + 1, fill);
  return all[Index(v)];
}

}  // namespace

void Rewriter::SetLocation(Location location) {
  own_location_ = std::move(location);
  location_ = &own_location_;
}

Node& Rewriter::EmitTyped(Op op, ValueIds operands, std::vector<Type> types, Attrs attrs) {
  auto made = std::make_unique<Node>();
  Node& node = *made;
  node.op = op;
  node.attrs = std::move(attrs);
  node.operands = std::move(operands);
  node.location = *location_;
  for (Type& type : types) node.results.push_back(f_.AddValue(std::move(type), location_->name));
  if (at_) places_.push_back(*at_);
  (at_ ? inserted_ : f_.nodes).push_back(std::move(made));
  if (uses_) AddUses(*uses_, node);
  return node;
}

Node& Rewriter::Emit(Op op, ValueIds operands, Attrs attrs, size_t results) {
  Node& node = EmitTyped(op, std::move(operands), std::vector<Type>(results), std::move(attrs));
  if (infer_) infer_(f_, node);
  return node;
}

ValueId Rewriter::F32(const Shape& shape, const std::vector<double>& values, std::string name) {
  return f_.AddConst(DType::kF32, shape, std::vector<float>(values.begin(), values.end()), std::move(name));
}

ValueId Rewriter::I32Vector(std::vector<int32_t> values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return f_.AddConst(DType::kI32, shape, std::move(values));
}

ValueId Rewriter::Scalar(DType dtype, double value) {
  const auto of = [&]<class T>(T typed) {
    return f_.AddConst(dtype, Shape::Scalar(), std::vector<T>{typed});
  };
  switch (dtype) {
    case DType::kF32: return of(static_cast<float>(value));
    case DType::kF64: return of(value);
    case DType::kI8: return of(static_cast<int8_t>(value));
    case DType::kI16: return of(static_cast<int16_t>(value));
    case DType::kI32: return of(static_cast<int32_t>(value));
    case DType::kI64: return of(static_cast<int64_t>(value));
    case DType::kU8: return of(static_cast<uint8_t>(value));
    case DType::kBool: return of(static_cast<uint8_t>(value != 0));
    default: break;
  }
  const ValueId single = Scalar(DType::kF32, value);
  if (dtype == DType::kNone) return single;
  const ValueId cast = Cast(single, dtype);
  f_.value(cast).type = {dtype, Shape::Scalar()};
  return cast;
}

ValueId Rewriter::ShapeOf(ValueId v) { return Value(Op::kShape, {v}, MakeAttrs("out_type", DType::kI32)); }

ValueId Rewriter::ToI32(ValueId v) {
  if (type(v).dtype != DType::kI64) return v;
  const auto wide = ConstInts(f_, v);
  if (!wide) return Cast(v, DType::kI32);
  std::vector<int32_t> narrow;
  for (const int64_t x : *wide)
    narrow.push_back(static_cast<int32_t>(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX)));
  return f_.AddConst(DType::kI32, Shape(shape(v)), std::move(narrow));
}

ValueId Rewriter::Cast(ValueId v, DType to) {
  const DType from = type(v).dtype;
  return from == to ? v : Value(Op::kCast, {v}, MakeAttrs("in_data_type", from, "out_data_type", to));
}

ValueId Rewriter::Copy(ValueId v) { return Typed(Op::kMul, {v, Scalar(DType::kF32, 1)}, type(v)); }

void Rewriter::Rollback(size_t mark) {
  if (uses_)
    for (const auto& node : EmittedSince(mark)) DropUses(*node);
  if (at_) places_.resize(mark);
  (at_ ? inserted_ : f_.nodes).resize(mark);
}

Rewriter::Uses& Rewriter::uses() const {
  if (uses_) return *uses_;
  for (size_t i = walked_; i < f_.nodes.size(); ++i)
    if (f_.nodes[i]) ApplyForwards(*f_.nodes[i]);
  for (ValueId& v : f_.outputs) v = Forwarded(v);
  Uses uses;
  const Nodes& nodes = f_.nodes;
  for (const Nodes* list : {&nodes, &inserted_})
    for (const auto& node : *list)
      if (node && !is_removed(*node)) AddUses(uses, *node);
  for (const ValueId v : f_.outputs) ++Slot(uses.outputs, v);
  return uses_.emplace(std::move(uses));
}

void Rewriter::AddUses(Uses& uses, Node& node) const {
  for (const ValueId v : node.results)
    if (v != kNoValue) Slot(uses.producers, v) = &node;
  for (const ValueId v : node.operands)
    if (v != kNoValue) Slot(uses.readers, v).push_back(&node);
}

void Rewriter::DropUses(const Node& node) {
  for (const ValueId v : node.results)
    if (v != kNoValue) uses().producers[Index(v)] = nullptr;
  for (const ValueId v : node.operands) {
    if (v == kNoValue) continue;
    auto& list = uses().readers[Index(v)];
    if (const auto it = std::ranges::find(list, &node); it != list.end()) list.erase(it);
  }
}

Node* Rewriter::producer(ValueId v) const {
  const auto& all = uses().producers;
  return v == kNoValue || Index(v) >= all.size() ? nullptr : all[Index(v)];
}

Node* Rewriter::producer(ValueId v, Op op) const {
  Node* const node = producer(v);
  return node && node->is(op) ? node : nullptr;
}

std::span<Node* const> Rewriter::readers(ValueId v) const {
  const auto& all = uses().readers;
  if (Index(v) >= all.size()) return {};
  return all[Index(v)];
}

bool Rewriter::is_output(ValueId v) const {
  const auto& all = uses().outputs;
  return Index(v) < all.size() && all[Index(v)] > 0;
}

size_t Rewriter::reads(ValueId v) const {
  return readers(v).size() + (is_output(v) ? uses().outputs[Index(v)] : 0);
}

void Rewriter::DropReader(ValueId v, const Node& node) {
  if (v == kNoValue) return;
  auto& list = uses().readers[Index(v)];
  if (const auto it = std::ranges::find(list, &node); it != list.end()) list.erase(it);
  if (reads(v) > 0) return;
  if (is_const(v)) f_.value(v).data = Buffer();  // large weights must not wait for Compact
  Node* const made = producer(v);
  if (!made || Info(made->op).effects != Effects::kPure) return;
  const auto unread = [&](ValueId result) { return result == kNoValue || reads(result) == 0; };
  if (std::ranges::all_of(made->results, unread)) Remove(*made);
}

void Rewriter::SetOperand(Node& node, size_t index, ValueId v) {
  ValueIds operands = node.operands;
  if (index >= operands.size()) operands.resize(index + 1, kNoValue);
  operands[index] = v;
  SetOperands(node, std::move(operands));
}

void Rewriter::SetOperands(Node& node, ValueIds operands) {
  Uses& now = uses();
  const ValueIds before = std::exchange(node.operands, std::move(operands));
  for (const ValueId v : node.operands)
    if (v != kNoValue) Slot(now.readers, v).push_back(&node);
  for (const ValueId v : before) DropReader(v, node);
}

void Rewriter::ReplaceUses(ValueId from, ValueId by) {
  Uses& now = uses();
  const std::vector<Node*> list = std::exchange(Slot(now.readers, from), {});
  for (Node* reader : list) std::ranges::replace(reader->operands, from, by);
  auto& joined = Slot(now.readers, by);
  joined.insert(joined.end(), list.begin(), list.end());
  if (!is_output(from)) return;
  std::ranges::replace(f_.outputs, from, by);
  const size_t moved = std::exchange(now.outputs[Index(from)], 0);
  Slot(now.outputs, by) += moved;
}

void Rewriter::Replace(Node& node, ValueId by) {
  ReplaceUses(node.results[0], by);
  Remove(node);
}

void Rewriter::Remove(Node& node) {
  Uses& now = uses();
  if (!removed_.insert(&node).second) return;
  for (const ValueId v : node.results)
    if (v != kNoValue) now.producers[Index(v)] = nullptr;
  for (const ValueId v : node.operands) DropReader(v, node);
}

Status Rewriter::Walk(const std::function<Status(Node&)>& visit) {
  Status failure;
  while (walked_ < f_.nodes.size()) {
    const size_t i = walked_++;
    if (!f_.nodes[i]) continue;
    Node& node = *f_.nodes[i];
    if (!uses_) ApplyForwards(node);
    InsertBefore(i);
    location_ = &node.location;
    if (failure && !is_removed(node)) failure = visit(node);
    if (removed_.erase(&node) > 0) dropped_.push_back(std::move(f_.nodes[i]));
  }
  if (!uses_)
    for (ValueId& v : f_.outputs) v = Forwarded(v);
  Finish();
  return failure;
}

void Rewriter::Forward(ValueId from, ValueId to) {
  if (uses_) ReplaceUses(from, to);
  else Slot(forwards_, from, kNoValue) = to;
}

void Rewriter::Drop(Node& node) {
  if (uses_) DropUses(node);
  removed_.insert(&node);
}

ValueId Rewriter::Forwarded(ValueId v) const {
  while (v != kNoValue && Index(v) < forwards_.size() && forwards_[Index(v)] != kNoValue)
    v = forwards_[Index(v)];
  return v;
}

void Rewriter::ApplyForwards(Node& node) const {
  for (ValueId& v : node.operands) v = Forwarded(v);
}

void Rewriter::Finish() {
  Splice();
  if (!removed_.empty() || walked_ > 0)
    std::erase_if(f_.nodes, [&](const auto& node) { return !node || is_removed(*node); });
  InsertAtEnd();
  location_ = &own_location_;
  removed_.clear();
  dropped_.clear();
  forwards_.clear();
  walked_ = 0;
  uses_.reset();
}

void Rewriter::Splice() {
  if (inserted_.empty()) return;
  std::vector<size_t> order(inserted_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t k) { return places_[k]; });
  Nodes before = std::exchange(f_.nodes, {});
  f_.nodes.reserve(before.size() + inserted_.size());
  auto next = order.begin();
  for (size_t i = 0; i <= before.size(); ++i) {
    for (; next != order.end() && (places_[*next] == i || i == before.size()); ++next)
      f_.nodes.push_back(std::move(inserted_[*next]));
    if (i < before.size()) f_.nodes.push_back(std::move(before[i]));
  }
  inserted_.clear();
  places_.clear();
}

}  // namespace fusebox
