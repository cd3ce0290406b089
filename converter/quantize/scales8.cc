// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <ranges>

#include "converter/quantize/ops8.h"

namespace fusebox::converter::quantize {
namespace {

std::shared_ptr<const Quant> QuantOf(float scale, int64_t zero_point) {
  return std::make_shared<const Quant>(Quant{{scale}, {}, {}, {zero_point}});
}

double Width(const Range& range) { return static_cast<double>(range.max) - range.min; }

void Merge(const Range& from, Range& to) {
  to.min = std::min(to.min, from.min);
  to.max = std::max(to.max, from.max);
  to.largest = std::max(to.largest, from.largest);
  to.seen = to.seen || from.seen;
  to.finite = to.finite && from.finite;
}

}  // namespace

std::shared_ptr<const Quant> ActivationScale(const Range& range, DType dtype) {
  if (dtype == DType::kI16) {
    const float most = std::max(-range.min, range.max);
    return QuantOf(most > 0 ? std::max(most / 32767, FLT_MIN) : 1.0f, 0);
  }
  const float scale = Width(range) > 0 ? std::max(static_cast<float>(Width(range) / 255), FLT_MIN) : 1.0f;
  const double zero = std::round(-128 - range.min / static_cast<double>(scale));
  return QuantOf(scale, static_cast<int64_t>(std::clamp(zero, -128.0, 127.0)));
}

Scales::Scales(Registry& registry, const Function& f, const Ranges& ranges, const Reasons& floats,
               DType activations)
    : f_(f), uses_(f), floats_(floats), activations_(activations), groups_(ranges) {
  constexpr float kWords = 1.0f / 32768;  // of every op whose 16-bit result has a fixed scale
  std::vector<const Node*> nodes;
  for (const auto& node : f.nodes)
    if (!floats.contains(node.get())) nodes.push_back(node.get());
  for (const Node* node : nodes)
    if (const FixedScale& fixed = Info(node->op).fixed_scale; fixed.scale > 0)
      fixed_[node->results[0]] =
          activations == DType::kI16 ? QuantOf(kWords, 0) : QuantOf(fixed.scale, fixed.zero_point);
  std::map<const Node*, std::vector<OpQuantization::SameScale>> groups;
  for (const Node* node : nodes)
    if (auto roles = RolesOf(registry, *node)) groups[node] = std::move(roles->same_scale);
  for (const Node* node : nodes)
    if (Role(*node) == Quantizes::kSame) TieResults(*node);
  for (const Node* node : nodes)
    for (const auto& group : groups[node]) TieResults(*node, group);
  for (const Node* node : nodes)
    if (Role(*node) == Quantizes::kLstm) TieOutputState(*node);
  for (const Node* node : nodes)
    if (Role(*node) == Quantizes::kLstm) recurrent_.insert(Root(node->results[0]));
  // From the last join backwards, because a join's operands depend on its result's group.
  for (const Node* node : nodes | std::views::reverse) {
    if (Role(*node) == Quantizes::kJoin) TieOperands(*node, node->results[0], node->operands);
    for (const auto& group : groups[node]) {
      std::vector<ValueId> operands;
      for (const size_t i : group.operands) operands.push_back(OperandOf(*node, i));
      TieOperands(*node, LeadOf(f, *node, group), operands);
    }
  }
  for (const Node* node : nodes)
    if (Role(*node) == Quantizes::kLstm && NeedsSymmetricOutput(*node))
      symmetric_.insert(Root(node->results[0]));
}

std::shared_ptr<const Quant> Scales::Of(ValueId v) { return WhyNot(v).empty() ? Known(Root(v)) : nullptr; }

std::string Scales::WhyNot(ValueId v) {
  // In steps, large mask values must fit the integers in which readers compute.
  constexpr double kWidest = 1e9;
  constexpr double kMostSteps = 1 << 30;
  const ValueId root = Root(v);
  const auto group = groups_.find(root);
  if (group != groups_.end() && !group->second.finite) return "its values are not all finite";
  if (fixed_.contains(root)) return "";
  if (group == groups_.end() || !group->second.seen) return "it was not observed";
  const double largest = group->second.largest;
  if (largest >= kWidest || largest > kMostSteps * Known(root)->scales[0])
    return std::string("its range is too wide for ") + (activations_ == DType::kI16 ? "16" : "8") + " bits";
  return "";
}

std::shared_ptr<const Quant> Scales::Known(ValueId root) {
  if (const auto fixed = fixed_.find(root); fixed != fixed_.end()) return fixed->second;
  auto [known, added] = quants_.emplace(root, nullptr);
  const Range& range = groups_.at(root);
  if (added)
    known->second = symmetric_.contains(root) ? SymmetricScale(range) : ActivationScale(range, activations_);
  return known->second;
}

ValueId Scales::Root(ValueId v) {
  auto [it, added] = parent_.emplace(v, v);
  if (it->second == v) return v;
  const ValueId root = Root(it->second);
  parent_[v] = root;
  return root;
}

// A group with a fixed scale keeps it.
void Scales::Tie(ValueId a, ValueId b) {
  a = Root(a);
  b = Root(b);
  if (a == b) return;
  if (fixed_.contains(b) && fixed_.contains(a)) return;
  if (fixed_.contains(b)) std::swap(a, b);
  parent_[b] = a;
  Merge(groups_.at(b), groups_.at(a));
}

// A table's range covers all its elements, not only the observed ones.
void Scales::TieResults(const Node& node) {
  const ValueId x = node.operands[DataOperand(node)];
  const bool is_table = x != kNoValue && f_.value(x).is_const() && f_.value(x).type.dtype == DType::kF32;
  for (const ValueId result : node.results) {
    if (!IsActivation(result)) continue;
    if (IsActivation(x)) Tie(x, result);
    else if (is_table) groups_.at(Root(result)).Widen({f_.value(x).type, f_.value(x).data});
  }
}

void Scales::TieResults(const Node& node, const OpQuantization::SameScale& group) {
  const ValueId lead = LeadOf(f_, node, group);
  for (const size_t i : group.results)
    if (i < node.results.size() && IsActivation(node.results[i]) && IsActivation(lead))
      Tie(lead, node.results[i]);
}

void Scales::TieOutputState(const Node& node) {
  if (node.operands.size() <= kLstmOutputState) return;
  const ValueId state = node.operands[kLstmOutputState];
  if (IsActivation(state) && IsActivation(node.results[0]) && !fixed_.contains(Root(state)))
    Tie(node.results[0], state);
}

// Operands with their own scale are converted instead of tied, such as an LSTM's output, which is also its
// state. The same holds for operands with other readers that would lose most steps, and for operands of which
// MAXIMUM or MINIMUM uses a small part of the range.
void Scales::TieOperands(const Node& node, ValueId to, std::span<const ValueId> operands) {
  constexpr double kMuch = 4;
  constexpr double kFarMore = 16;
  if (!IsActivation(to)) return;
  for (const ValueId v : operands) {
    if (!IsActivation(v) || HasItsOwn(v) || fixed_.contains(Root(to))) continue;
    const double own = Width(groups_.at(Root(v)));
    const double all = Width(groups_.at(Root(to)));
    if (node.is(Op::kPadV2) && all > kFarMore * own) continue;  // it stays f32
    if (own > kFarMore * all || (all > kMuch * own && !IsOnlyFor(v, node))) continue;
    Tie(to, v);
  }
}

bool Scales::HasItsOwn(ValueId v) { return fixed_.contains(Root(v)) || recurrent_.contains(Root(v)); }

// True if the value, or the value it was moved from, has no reader but the node.
bool Scales::IsOnlyFor(ValueId v, const Node& node) const {
  for (const Node* reader = &node;;) {
    for (const auto& use : uses_.readers(v))
      if (use.node != reader) return false;
    const Node* from = uses_.producer(v);
    if (!from || floats_.contains(from) || Role(*from) != Quantizes::kSame) return true;
    for (const ValueId other : from->results)
      if (other != v && other != kNoValue && !uses_.readers(other).empty()) return false;
    v = from->operands[DataOperand(*from)];
    if (!IsActivation(v)) return true;
    reader = from;
  }
}

}  // namespace fusebox::converter::quantize
