// SPDX-License-Identifier: Apache-2.0
// A border is a QUANTIZE or DEQUANTIZE: it costs time, and QUANTIZE rounds. A node stays f32 if that saves at
// least as many borders as 8 bits are worth to it. This removes small 8-bit islands between f32 ops; a model
// that can run in 8 bits throughout has no borders.
#include <algorithm>
#include <limits>
#include <ranges>
#include <set>

#include "converter/quantize/ops8.h"

namespace fusebox::converter::quantize {
namespace {

constexpr int kNever = std::numeric_limits<int>::max() / 2;
// Number of elements from which an i8 constant pays off.
constexpr size_t kTable = 1024;

// Ops whose results change completely after a small change of an operand.
bool IsExact(const Function& f, const Node& reader) {
  if (!Has(reader.op, kDiscrete)) return false;
  return !reader.is(Op::kCast) || !IsFloat(f.value(reader.results[0]).type.dtype);
}

// Custom ops without an 8-bit form are f32 before.
bool IsFixture(const Node& node) {
  return Role(node) == Quantizes::kWeighted || Role(node) == Quantizes::kLstm || node.is(Op::kCustom);
}

bool HasTable(const Function& f, const Node& node) {
  return std::ranges::any_of(node.operands, [&](ValueId v) {
    return v != kNoValue && f.value(v).is_const() && f.value(v).data.size() >= kTable * sizeof(float);
  });
}

// Number of borders that running the node in 8 bits is worth.
int Worth(const Function& f, const Node& node) {
  const bool has_table = HasTable(f, node);
  if (IsFixture(node) || (has_table && node.is(Op::kGather))) return kNever;
  return has_table || Has(node.op, kCostly) ? 2 : 0;
}

class Choice {
 public:
  Choice(const Function& f, Reasons refused) : f_(f), uses_(f), floats_(std::move(refused)) {}

  Reasons Run() {
    for (const auto& node : f_.nodes | std::views::reverse) KeepExact(*node);
    for (bool again = true; again;) {
      again = false;
      for (const auto& node : f_.nodes) again = Leaves(*node) || again;
      for (const auto& node : f_.nodes | std::views::reverse) again = Leaves(*node) || again;
    }
    return std::move(floats_);
  }

 private:
  bool IsFloatOp(const Node* node) const { return floats_.contains(node); }
  bool IsActivation(ValueId v) const {
    return v != kNoValue && f_.value(v).type.dtype == DType::kF32 && !f_.value(v).is_const();
  }

  // Operands of an exact op must be exact as far back as they are only moved or added.
  void KeepExact(const Node& node) {
    if (IsFloatOp(&node)) {
      if (IsExact(f_, node)) exact_.insert(&node);
      return;
    }
    if (IsFixture(node) || Has(node.op, kCostly)) return;
    if (IsState(node)) {
      floats_[&node] = "";  // rounded by the QUANTIZE to 8 or 16 bits
      return;
    }
    bool exact = false;
    bool relative = false;
    bool others = false;
    for (const ValueId v : node.results) {
      if (!IsActivation(v)) continue;
      for (const auto& use : uses_.readers(v)) {
        exact = exact || (use.node && exact_.contains(use.node));
        (use.node && Has(use.node->op, kRelative) ? relative : others) = true;
      }
    }
    if (exact) exact_.insert(&node);
    if (exact) floats_[&node] = "a comparison, rounding or conversion to integers depends on it";
    else if (relative && !others && Worth(f_, node) < kNever)
      floats_[&node] = "only read by ops without an 8-bit form";
  }

  // Returns whether the result is only used as initial state of an integer LSTM.
  bool IsState(const Node& node) const {
    if (node.results.empty() || node.results[0] == kNoValue) return false;
    const auto readers = uses_.readers(node.results[0]);
    return !readers.empty() && std::ranges::all_of(readers, [&](const Uses::Reader& use) {
      return use.node && !IsFloatOp(use.node) && Role(*use.node) == Quantizes::kLstm &&
             (use.index == static_cast<int>(kLstmOutputState) ||
              use.index == static_cast<int>(kLstmCellState));
    });
  }

  bool Leaves(const Node& node) {
    if (IsFloatOp(&node)) return false;
    const int before = Borders(node);
    if (before < Worth(f_, node) || before == 0) return false;
    floats_[&node] = "8 bits between f32 ops only add conversions";
    if (Borders(node) + Worth(f_, node) <= before) return true;
    floats_.erase(&node);
    return false;
  }

  // Borders around the node.
  int Borders(const Node& node) const {
    std::set<ValueId> values;
    for (const ValueId v : node.operands)
      if (IsActivation(v)) values.insert(v);
    for (const ValueId v : node.results)
      if (IsActivation(v)) values.insert(v);
    return static_cast<int>(std::ranges::count_if(values, [&](ValueId v) { return IsBorder(v); }));
  }
  // Inputs and outputs of the function are always f32.
  bool IsBorder(ValueId v) const {
    bool bytes = false;
    bool floats = false;
    for (const auto& use : uses_.readers(v))
      if (use.node) (IsFloatOp(use.node) ? floats : bytes) = true;
    if (const Node* from = uses_.producer(v)) (IsFloatOp(from) ? floats : bytes) = true;
    return bytes && floats;
  }

  const Function& f_;
  const Uses uses_;
  Reasons floats_;
  std::set<const Node*> exact_;
};

}  // namespace

Reasons StayFloat(const Function& f, Reasons refused) { return Choice(f, std::move(refused)).Run(); }

}  // namespace fusebox::converter::quantize
