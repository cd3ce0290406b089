// SPDX-License-Identifier: Apache-2.0
// Ops that change nothing: x * 1, x + 0, a pad of nothing, a reshape to the shape it has, a transpose that
// moves nothing.
#include <algorithm>

#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

bool All(const std::optional<std::vector<double>>& values, double wanted) {
  return values && std::ranges::all_of(*values, [&](double x) { return x == wanted; });
}

// The node becomes its operand, where both are of one known type.
bool Becomes(Edit& e, Node& node, ValueId x) {
  const Type& from = e.type(x);
  const Type& to = e.type(node.results[0]);
  if (e.is_const(x) || from != to || !to.shape.is_static()) return false;
  e.Replace(node, x);
  return true;
}

bool Arithmetic(Edit& e, Node& node, double neutral, bool commutes) {
  if (HasActivation(node)) return false;
  if (All(e.Floats(node.operands[1]), neutral) && Becomes(e, node, node.operands[0])) return true;
  return commutes && All(e.Floats(node.operands[0]), neutral) && Becomes(e, node, node.operands[1]);
}

bool ByOne(Edit& e, Node& node) { return Arithmetic(e, node, 1, true); }
bool OverOne(Edit& e, Node& node) { return Arithmetic(e, node, 1, false); }
bool PlusZero(Edit& e, Node& node) { return Arithmetic(e, node, 0, true); }
bool LessZero(Edit& e, Node& node) { return Arithmetic(e, node, 0, false); }

bool SameShape(Edit& e, Node& node) { return Becomes(e, node, node.operands[0]); }

// The type may be open: the order alone tells.
bool Transposed(Edit& e, Node& node) {
  const auto order = e.Ints(node.operands[1]);
  if (!order || e.is_const(node.operands[0])) return false;
  for (size_t i = 0; i < order->size(); ++i)
    if ((*order)[i] != static_cast<int64_t>(i)) return false;
  e.Replace(node, node.operands[0]);
  return true;
}
constexpr Rule kTransposed = {Op::kTranspose, Transposed};
constexpr Rule kLessZero = {Op::kSub, LessZero};
constexpr Rule kPlusZero = {Op::kAdd, PlusZero};
constexpr Rule kOverOne = {Op::kDiv, OverOne};
constexpr Rule kByOne = {Op::kMul, ByOne};

bool Padded(Edit& e, Node& node) {
  const auto amounts = e.Ints(node.operands[1]);
  if (!amounts || std::ranges::any_of(*amounts, [](int64_t a) { return a != 0; })) return false;
  if (e.is_const(node.operands[0])) return false;
  e.Replace(node, node.operands[0]);
  return true;
}
constexpr Rule kPadded = {Op::kPad, Padded};

}  // namespace

std::span<const Rule> NeutralRules() {
  static constexpr Rule kRules[] = {kByOne,      kOverOne, kPlusZero, kLessZero, {kKeepsOrder, SameShape},
                                    kTransposed, kPadded};
  return kRules;
}

}  // namespace fusebox::converter::optimize
