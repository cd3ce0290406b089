// SPDX-License-Identifier: Apache-2.0
// Transposes sink towards the outputs until two meet and cancel: what is left of a graph whose channels come
// first is a transpose at its inputs and at its outputs.
#include <algorithm>

#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

using Order = std::vector<int64_t>;

std::optional<Order> OrderOf(const Edit& e, const Node* node) {
  if (!node || !node->is(Op::kTranspose) || e.is_const(node->operands[0])) return std::nullopt;
  auto order = e.Ints(node->operands[1]);
  if (!order || static_cast<int>(order->size()) != e.rank(node->operands[0])) return std::nullopt;
  std::vector<bool> seen(order->size());
  for (const int64_t d : *order) {
    if (d < 0 || d >= static_cast<int64_t>(order->size()) || seen[static_cast<size_t>(d)])
      return std::nullopt;
    seen[static_cast<size_t>(d)] = true;
  }
  return order;
}

Order Inverse(const Order& order) {
  Order out(order.size());
  for (size_t i = 0; i < order.size(); ++i) out[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return out;
}

bool IsUnary(const Node& node) { return Has(node.op, kElementwise) && node.operands.size() == 1; }
bool IsBinary(const Node& node) { return Has(node.op, kElementwise) && node.operands.size() == 2; }

// The order of the transposes that all operands which are no constants come from; nothing when they do not
// agree.
std::optional<Order> CommonOrder(const Edit& e, const Node& node) {
  std::optional<Order> common;
  for (ValueId v : node.operands) {
    if (e.is_const(v)) continue;
    const auto order = OrderOf(e, e.producer(v));
    if (!order || (common && *common != *order)) return std::nullopt;
    common = order;
  }
  return common;
}

// How many of a constant's dimensions would have to be moved; all or nothing, so a vector is widened first.
bool Movable(const Edit& e, ValueId v, size_t rank) {
  return e.is_f32(v) && e.rank(v) <= static_cast<int>(rank);
}

// Returns whether a transpose can move behind the op, whatever produces its operands.
bool IsPassable(const Edit& e, const Node& node, size_t rank) {
  if (IsUnary(node)) return true;
  if (node.is(Op::kConcatenation))
    return !HasActivation(node) &&
           std::ranges::none_of(node.operands, [&](ValueId v) { return e.is_const(v); });
  if (node.is(Op::kPad) || Has(node.op, kReduces)) return e.Ints(node.operands[1]).has_value();
  return IsBinary(node) && std::ranges::all_of(node.operands, [&](ValueId v) {
           return e.is_const(v) ? Movable(e, v, rank) : e.rank(v) == static_cast<int>(rank);
         });
}

bool CanSink(const Edit& e, const Node& node) {
  const auto order = CommonOrder(e, node);
  return order && IsPassable(e, node, order->size());
}

// Returns whether the transposes before the op can all move in front of it, and then behind it.
bool WillSink(const Edit& e, const Node& node, const Order& order, int depth = 0) {
  constexpr int kDeepest = 8;
  if (depth == kDeepest || !IsPassable(e, node, order.size())) return false;
  return std::ranges::all_of(node.operands, [&](ValueId v) {
    if (e.is_const(v)) return true;
    const Node* const before = e.producer(v);
    if (const auto next = OrderOf(e, before)) return *next == order;
    return before && WillSink(e, *before, order, depth + 1);
  });
}

// A transpose with several readers stays for those that it cannot sink through, and one more would be made:
// only when all go along, or undo it.
bool AllGoAlong(const Edit& e, const Node& node) {
  for (ValueId v : node.operands) {
    if (e.is_const(v) || e.read_once(v)) continue;
    if (e.is_output(v)) return false;
    const auto order = OrderOf(e, e.producer(v));
    for (const Node* reader : e.readers(v)) {
      const auto next = OrderOf(e, reader);
      if (next ? *next != Inverse(*order) : !WillSink(e, *reader, *order)) return false;
    }
  }
  return true;
}

ValueId Source(const Edit& e, ValueId v) { return e.producer(v)->operands[0]; }

// The constant as it lies before the transpose.
ValueId MovedConstant(Edit& e, ValueId v, const Order& order) {
  std::vector<int64_t> dims(order.size(), 1);
  const Shape shape = e.shape(v);
  std::copy(shape.dims().begin(), shape.dims().end(), dims.end() - shape.rank());
  const ValueId wide = e.Reshape(v, dims);
  return e.Transpose(wide, Inverse(order));
}

void ReplaceByTransposed(Edit& e, Node& node, ValueId y, const Order& order) {
  e.Replace(node, e.Transpose(y, order));
}

bool SinkElementwise(Edit& e, Node& node) {
  if (!CanSink(e, node) || !AllGoAlong(e, node)) return false;
  const Order order = *CommonOrder(e, node);
  ValueIds operands;
  for (ValueId v : node.operands) {
    if (!e.is_const(v)) operands.push_back(Source(e, v));
    else if (*e.shape(v).element_count() == 1) operands.push_back(v);
    else operands.push_back(MovedConstant(e, v, order));
  }
  Attrs attrs = node.attrs;
  if (node.is(Op::kCast))
    attrs.Set("out_data_type", e.type(node.results[0]).dtype);  // a file may leave it out
  ReplaceByTransposed(e, node, e.Value(node.op, std::move(operands), std::move(attrs)), order);
  return true;
}

bool SinkPad(Edit& e, Node& node) {
  if (!CanSink(e, node) || !AllGoAlong(e, node)) return false;
  const Order order = *CommonOrder(e, node);
  const auto amounts = *e.Ints(node.operands[1]);
  if (amounts.size() != order.size() * 2) return false;
  std::vector<int64_t> moved(amounts.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const auto to = static_cast<size_t>(order[i]);
    moved[2 * to] = amounts[2 * i];
    moved[2 * to + 1] = amounts[2 * i + 1];
  }
  const ValueId table = e.Reshape(e.I32(moved), {static_cast<int64_t>(order.size()), 2});
  ReplaceByTransposed(e, node, e.Value(node.op, {Source(e, node.operands[0]), table}, node.attrs), order);
  return true;
}

bool SinkConcat(Edit& e, Node& node) {
  if (!CanSink(e, node) || !AllGoAlong(e, node)) return false;
  const Order order = *CommonOrder(e, node);
  const int64_t axis = node.attrs.i64("axis", 0);
  const int64_t rank = static_cast<int64_t>(order.size());
  if (axis < -rank || axis >= rank) return false;
  Attrs attrs = node.attrs;
  attrs.Set("axis", order[static_cast<size_t>(axis < 0 ? axis + rank : axis)]);
  ValueIds operands;
  for (ValueId v : node.operands) operands.push_back(Source(e, v));
  ReplaceByTransposed(e, node, e.Value(node.op, std::move(operands), std::move(attrs)), order);
  return true;
}

// Reduced dimensions that are dropped leave the others in their order.
bool SinkReduction(Edit& e, Node& node) {
  if (!CanSink(e, node) || !AllGoAlong(e, node)) return false;
  const Order order = *CommonOrder(e, node);
  const auto rank = static_cast<int64_t>(order.size());
  std::vector<int64_t> axes;
  const auto reduced = *e.Ints(node.operands[1]);
  for (const int64_t axis : reduced) {
    if (axis < -rank || axis >= rank) return false;
    axes.push_back(order[static_cast<size_t>(axis < 0 ? axis + rank : axis)]);
  }
  const bool keep = node.attrs.b("keep_dims", false);
  Order left = order;
  if (!keep) {
    std::erase_if(left, [&](int64_t d) { return std::ranges::find(axes, d) != axes.end(); });
    Order sorted = left;
    std::ranges::sort(sorted);
    for (int64_t& d : left) d = std::ranges::find(sorted, d) - sorted.begin();
  }
  const ValueId y = e.Value(node.op, {Source(e, node.operands[0]), e.I32(axes)}, node.attrs);
  if (std::ranges::is_sorted(left)) e.Replace(node, y);
  else ReplaceByTransposed(e, node, y, left);
  return true;
}

bool TwoInARow(Edit& e, Node& node) {
  const auto second = OrderOf(e, &node);
  Node* const before = e.producer(node.operands[0]);
  const auto first = OrderOf(e, before);
  if (!second || !first) return false;
  Order both;
  for (const int64_t d : *second) both.push_back((*first)[static_cast<size_t>(d)]);
  const ValueId x = before->operands[0];
  if (std::ranges::is_sorted(both)) {
    e.Replace(node, x);
    return true;
  }
  e.SetOperands(node, {x, e.I32(both)});
  return true;
}

// A transpose that moves only dimensions of one element is a reshape, which merges with other reshapes.
bool MovesNothing(Edit& e, Node& node) {
  const auto order = OrderOf(e, &node);
  if (!order) return false;
  const Shape& from = e.shape(node.operands[0]);
  const Shape to = e.shape(node.results[0]);
  Order moved;
  for (const int64_t d : *order)
    if (from[static_cast<size_t>(d)] != 1) moved.push_back(d);
  const auto open = std::ranges::count_if(to.dims(), [](int64_t d) { return d < 0; });
  const bool empty = std::ranges::any_of(to.dims(), [](int64_t d) { return d == 0; });
  if (!std::ranges::is_sorted(moved) || !to.ranked() || open > 1 || empty) return false;
  e.Replace(node, e.Reshape(node.operands[0], to.dims()));
  return true;
}

}  // namespace

std::span<const Rule> LayoutRules() {
  static constexpr Rule kRules[] = {{Op::kTranspose, TwoInARow}, {Op::kTranspose, MovesNothing},
                                    {Op::kPad, SinkPad},         {Op::kConcatenation, SinkConcat},
                                    {kReduces, SinkReduction},   {kElementwise, SinkElementwise}};
  return kRules;
}

}  // namespace fusebox::converter::optimize
