// SPDX-License-Identifier: Apache-2.0
// Infers the element shapes of lists from written and read items. A shape that is only known at run time
// (unknown batch) is computed from values that exist before the first read of the list.
#include "converter/passes/list_elements.h"

#include <algorithm>
#include <set>

#include "converter/passes/lists.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter {
namespace {

// Element type according to a reader; unranked: unknown.
Type ElementType(const ListReader& r) {
  if (r.node->is(Op::kTensorListSetItem) && r.index == 0) return r.f->value(r.node->operands[2]).type;
  if (r.node->is(Op::kTensorListGetItem)) return r.f->value(r.node->results[0]).type;
  if (!r.node->is(Op::kTensorListStack)) return {};
  Type type = r.f->value(r.node->results[0]).type;
  if (type.shape.rank() > 0) type.shape.dims().erase(type.shape.dims().begin());
  return type;
}

Type Declared(const Function& f, const Node& node) {
  const AttrValue* attr = node.attrs.Find("element_dtype");
  const auto* dtype = attr ? std::get_if<DType>(attr) : nullptr;
  const auto dims = ConstInts(f, node.operands[0]);
  if (!dtype || !dims || f.value(node.operands[0]).type.shape.rank() != 1) return {};
  return {*dtype, Shape(*dims)};
}

// If a variable starts with fewer unknown dimensions than the item, it is broadcast in the loop, and its
// initial shape is not the item's.
bool Keeps(const Type& initial, const Type& item) {
  if (initial.dtype != item.dtype || !initial.shape.ranked() || initial.shape.rank() != item.shape.rank())
    return false;
  for (size_t i = 0; i < item.shape.dims().size(); ++i)
    if (initial.shape[i] >= 0 && initial.shape[i] != item.shape[i]) return false;
  return true;
}

size_t IndexOf(const Function& f, const Node& node) {
  size_t index = 0;
  while (f.nodes[index].get() != &node) ++index;
  return index;
}

// Inserts nodes that compute sizes before nodes[at], in order.
class ShapeWriter : public Rewriter {
 public:
  ShapeWriter(Function& function, size_t at, OpenSizes& open) : Rewriter(function), open_(open) {
    InsertBefore(at);
  }

  // [length, dimensions...]; a value in `near` may have these dimensions.
  ValueId ListShape(ValueId length, const Sizes& dims, const ValueIds& near) {
    ValueIds parts = {Insert(Op::kReshape, {length, Number(1)}, 1)};
    const auto like =
        std::ranges::find_if(near, [&](ValueId v) { return v != kNoValue && open_.Dims(f(), v) == dims; });
    if (like != near.end() && !dims.empty()) parts.push_back(ShapeOf(*like));
    else
      for (const Size& dim : dims) parts.push_back(Write(dim));
    return Insert(Op::kConcatenation, parts, static_cast<int64_t>(dims.size()) + 1);
  }
  ValueId LengthOf(ValueId list, int rank) { return Pick(ShapeOf(list, rank), 0); }  // not lowered yet

 private:
  ValueId Insert(Op op, ValueIds operands, int64_t size, DType dtype = DType::kI32) {
    return Typed(op, std::move(operands), {dtype, {size}});
  }
  ValueId Number(int64_t n) { return I32({n}); }
  ValueId ShapeOf(ValueId v) { return ShapeOf(v, rank(v)); }
  ValueId ShapeOf(ValueId v, int rank) {
    return Typed(Op::kShape, {v}, {DType::kI32, {rank}}, MakeAttrs("out_type", DType::kI32));
  }
  ValueId Pick(ValueId shape, int64_t axis) {
    return Insert(Op::kStridedSlice, {shape, Number(axis), Number(axis + 1), Number(1)}, 1);
  }

  ValueId Write(const Size& size) {
    if (size.is_number()) return Number(size.offset);
    const SizeSymbol& symbol = open_.symbol(size);
    ValueId all = kNoValue;
    if (symbol.value != kNoValue) all = Pick(ShapeOf(symbol.value), symbol.axis);
    for (const Size& part : symbol.joined) all = Broadcast(all, Write(part));
    if (size.factor != 1) all = Insert(Op::kMul, {all, Number(size.factor)}, 1);
    if (size.offset != 0) all = Insert(Op::kAdd, {all, Number(size.offset)}, 1);
    return all;
  }
  // Returns the size other than 1 of two sizes that are equal or 1.
  ValueId Broadcast(ValueId all, ValueId next) {
    if (all == kNoValue) return next;
    const ValueId one = Insert(Op::kEqual, {all, Number(1)}, 1, DType::kBool);
    return Insert(Op::kSelectV2, {one, next, all}, 1);
  }

  OpenSizes& open_;
};

// If the loop carries the item as a variable, the item has that variable's shape: it is known before the
// loop, and checked after it.
ValueId CarriedAs(const Module& module, const Function& outer, const ListReader& put) {
  const Function& f = *put.f;
  const ValueId item = put.node->operands[2];
  if (!put.loop || &Callee(module, *put.loop, "body_subgraph_index") != &f) return item;
  for (size_t i = 0; i < f.outputs.size(); ++i)
    if (f.outputs[i] == item && Keeps(outer.value(put.loop->operands[i]).type, f.value(item).type))
      return f.inputs[i];
  return item;
}

}  // namespace

Elements ListElements::Of(const Node& reserve) {
  Type type;
  std::vector<ListReader> puts;
  const bool complete = VisitReaders(module_, f_, reserve.results[0], [&](const ListReader& r) {
    const Type told = ElementType(r);
    if (!type.shape.is_static() && r.certain && told.shape.is_static()) type = told;
    if (r.node->is(Op::kTensorListSetItem) && r.index == 0) puts.push_back(r);
  });
  if (!type.shape.is_static()) type = Declared(f_, reserve);
  if (type.shape.is_static()) return {std::move(type)};
  if (!complete || puts.empty()) return {};
  if (!open_) open_.emplace(registry_, module_, f_, OpenSizes::Depth::kAll);
  type.dtype = puts[0].f->value(puts[0].node->operands[2]).type.dtype;
  Sizes start;
  Checks checks;
  for (const ListReader& put : puts) {
    const auto dims = open_->Dims(*put.f, CarriedAs(module_, f_, put));
    const auto before = dims ? open_->Outside(*dims, false) : std::nullopt;
    const auto after = dims ? open_->Outside(*dims, true) : std::nullopt;
    if (&put == &puts[0] && before) start = *before;
    if (!before || !after || *before != start || put.f->value(put.node->operands[2]).type.dtype != type.dtype)
      return {};
    if (*before != *after) checks.emplace(std::pair(put.loop, *after), put.given_back);
  }
  const Node* first = FirstReader(reserve.results[0], start);
  return first ? Make(reserve, *first, type.dtype, start, checks) : Elements();
}

// The first reader of a list, if all values that define its items' dimensions exist before it.
const Node* ListElements::FirstReader(ValueId list, const Sizes& dims) const {
  const Uses uses(f_);
  std::set<ValueId> needed;
  for (const Size& dim : dims) open_->CollectValues(dim, needed);
  std::erase_if(needed, [&](ValueId v) { return !uses.producer(v); });
  for (const auto& node : f_.nodes) {
    if (std::ranges::find(node->operands, list) != node->operands.end())
      return needed.empty() ? node.get() : nullptr;
    for (const ValueId v : node->results) needed.erase(v);
  }
  return nullptr;
}

// Creates the list just before its first reader.
Elements ListElements::Make(const Node& reserve, const Node& first, DType dtype, const Sizes& start,
                            const Checks& checks) {
  const auto from = f_.nodes.begin() + static_cast<ptrdiff_t>(IndexOf(f_, reserve));
  std::rotate(from, from + 1, f_.nodes.begin() + static_cast<ptrdiff_t>(IndexOf(f_, first)));

  const ValueId length = reserve.operands[1];
  // An empty list's loop never runs and no item defines its length, so the length stays unknown.
  const int64_t steps = ConstInt(f_, length).value_or(0);
  std::vector<int64_t> dims = {steps > 0 ? steps : Shape::kUnknown};
  for (const Size& size : start) dims.push_back(size.is_number() ? size.offset : Shape::kUnknown);
  const Type list{dtype, Shape(dims)};
  const ValueId shape =
      ShapeWriter(f_, IndexOf(f_, reserve), *open_).ListShape(length, start, first.operands);
  for (const auto& [loop, given_back] : checks)
    CheckBehind(*loop.first, given_back, loop.second, length, list);
  return {list, shape};
}

// Reshapes a list after the loop to its expected shape. If the loop changed the shape, the run fails instead
// of computing wrong values.
void ListElements::CheckBehind(const Node& loop, ValueId given_back, const Sizes& dims, ValueId length,
                               Type type) {
  const auto i = static_cast<size_t>(std::ranges::find(loop.results, given_back) - loop.results.begin());
  const Function& body = Callee(module_, loop, "body_subgraph_index");
  const bool grows = Grows(module_, body, body.inputs[i]);
  const int rank = type.shape.rank();
  if (grows) type.shape.dims()[0] = Shape::kUnknown;
  const ValueId checked = f_.AddValue(std::move(type));
  f_.ReplaceUses(given_back, checked);
  ShapeWriter behind(f_, IndexOf(f_, loop) + 1, *open_);
  const ValueId shape =
      behind.ListShape(grows ? behind.LengthOf(given_back, rank) : length, dims, loop.results);
  behind.EmitTyped(Op::kReshape, {given_back, shape}, {}).results = {checked};
}

}  // namespace fusebox::converter
