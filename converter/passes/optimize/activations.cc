// SPDX-License-Identifier: Apache-2.0
// Clamps become the activations that they are, and activations go into the op before them.
#include <algorithm>

#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

// Returns the activation that equals `before` and then `after`, or an empty string if there is none.
std::string Together(const std::string& before, const std::string& after) {
  if (before == "NONE" || before == after) return after;
  const bool both = (before == "RELU" && after == "RELU6") || (before == "RELU6" && after == "RELU");
  return both ? "RELU6" : "";
}

bool Merge(Edit& e, Node& node) {
  const std::string name(Name(node.op));
  const ValueId x = node.operands[0];
  if (Node* before = e.producer(x); before && Has(before->op, kActivation) && e.read_once(x)) {
    const std::string both = Together(std::string(Name(before->op)), name);
    if (both.empty()) return false;
    const Op op = both == "RELU6" ? Op::kRelu6 : node.op;
    e.Replace(node, e.Value(op, {before->operands[0]}));
    return true;
  }
  Node* const before = e.producer(x);
  if (!before || !Has(before->op, kFusesActivation) || !e.is_f32(x)) return false;
  const std::string both = Together(before->attrs.str("fused_activation_function", "NONE"), name);
  if (both.empty()) return false;
  if (!e.read_once(x)) {
    e.Note(node, name + " is not merged into " + std::string(Name(before->op)) + ": its operand has " +
                     std::to_string(e.reads(x)) + " readers");
    return false;
  }
  before->attrs.Set("fused_activation_function", both);
  e.Absorb(node, x);
  return true;
}

// The constant bound of MINIMUM or MAXIMUM, and what is bounded.
struct Bound {
  ValueId x = kNoValue;
  double at = 0;
};
std::optional<Bound> BoundOf(const Edit& e, const Node& node) {
  for (size_t i = 0; i < 2; ++i) {
    const auto at = e.Scalar(node.operands[1 - i]);
    if (at && e.rank(node.operands[1 - i]) <= std::max(e.rank(node.operands[i]), 0))
      return Bound{node.operands[i], *at};
  }
  return std::nullopt;
}

// MINIMUM of MAXIMUM, either way round.
bool Clamp(Edit& e, Node& node) {
  const auto outer = BoundOf(e, node);
  if (!outer || !e.is_f32(outer->x)) return false;
  const bool upper = node.is(Op::kMinimum);
  Node* const before = e.producer(outer->x);
  if (before && before->is(upper ? Op::kMaximum : Op::kMinimum) && e.read_once(outer->x)) {
    if (const auto inner = BoundOf(e, *before)) {
      const double low = upper ? inner->at : outer->at;
      const double high = upper ? outer->at : inner->at;
      const Op op = low == 0 && high == 6 ? Op::kRelu6 : low == -1 && high == 1 ? Op::kReluN1To1 : Op::kAdd;
      if (op != Op::kAdd) {
        e.Replace(node, e.Value(op, {inner->x}));
        return true;
      }
    }
  }
  if (upper && outer->at == 6 && before && before->is(Op::kRelu) && e.read_once(outer->x)) {
    e.Replace(node, e.Value(Op::kRelu6, {before->operands[0]}));
    return true;
  }
  if (upper && outer->at == 6 && before && Has(before->op, kFusesActivation) && e.read_once(outer->x) &&
      before->attrs.str("fused_activation_function", "NONE") == "RELU") {
    e.Replace(node, e.Value(Op::kRelu6, {outer->x}));
    return true;
  }
  if (upper || outer->at != 0) return false;
  // An upper bound of 6 that comes next is waited for.
  for (const Node* next : e.readers(node.results[0])) {
    if (!next->is(Op::kMinimum)) continue;
    if (const auto high = BoundOf(e, *next); high && high->at == 6) return false;
  }
  e.Replace(node, e.Value(Op::kRelu, {outer->x}));
  return true;
}

}  // namespace

std::span<const Rule> ActivationRules() {
  static constexpr Rule kRules[] = {{Op::kMaximum, Op::kMinimum, Clamp}, {kActivation, Merge}};
  return kRules;
}

}  // namespace fusebox::converter::optimize
