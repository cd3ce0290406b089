// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/outline/step.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>

namespace fusebox::converter::outline {
namespace {

class Finder {
 public:
  explicit Finder(const Expressions& in) : in_(in) {}

  std::vector<Step> Run() {
    for (const auto& node : in_.function().nodes) {
      if (node->results.size() != 1) continue;
      const ValueId v = node->results[0];
      if (node->is(Op::kMul)) Lstm(v);
      else if (node->is(Op::kAdd) && in_.Plain(v, Op::kAdd) && Gru(v)) continue;
      else Simple(v);
    }
    return std::move(steps_);
  }

 private:
  bool IsPart(ValueId v) const {
    const Node* node = in_.Producer(v);
    return node && node->is(Op::kUnpack);
  }

  // The state that a gate reads besides its part of the input: kNoValue where it is folded; nothing when this
  // is no gate.
  std::optional<ValueId> StateOf(ValueId gate) const {
    const auto sum = in_.ReadAffine(in_.ReadActivation(gate));
    if (!sum || sum->products.empty() || sum->products.size() > 2) return std::nullopt;
    ValueId state = kNoValue;
    size_t parts = 0;
    for (const Product& product : sum->products) {
      if (IsPart(product.source)) ++parts;
      else state = product.source;
    }
    if (parts != 1) return std::nullopt;
    return state;
  }

  void Lstm(ValueId next_h) {
    const Node* product = in_.Plain(next_h, Op::kMul);
    if (!product) return;
    for (size_t k = 0; k < 2; ++k) {
      const ValueId next_c = in_.ReadActivation(product->operands[1 - k]).inner;
      const Node* sum = in_.Plain(next_c, Op::kAdd);
      const auto h = sum ? StateOf(product->operands[k]) : std::nullopt;
      if (!h) continue;
      for (const ValueId part : sum->operands) {
        const Node* mul = in_.Plain(part, Op::kMul);
        if (!mul) continue;
        for (const ValueId c : mul->operands) {
          auto cell = MatchLstm(in_, next_h, next_c, *h, c);
          if (!cell || !IsPart(cell->x)) continue;
          steps_.push_back({*std::move(cell), *h, c, next_h, next_c});
          return;
        }
      }
    }
  }

  bool Gru(ValueId next_h) {
    for (const ValueId part : in_.Producer(next_h)->operands) {
      const Node* mul = in_.Plain(part, Op::kMul);
      if (!mul) continue;
      for (const ValueId h : mul->operands) {
        auto cell = MatchGru(in_, next_h, h);
        if (!cell || !IsPart(cell->x)) continue;
        steps_.push_back({*std::move(cell), h, kNoValue, next_h, kNoValue});
        return true;
      }
    }
    return false;
  }

  void Simple(ValueId next_h) {
    const auto h = StateOf(next_h);
    if (!h) return;
    auto cell = MatchSimpleRnn(in_, next_h, *h);
    if (cell && IsPart(cell->x)) steps_.push_back({*std::move(cell), *h, kNoValue, next_h, kNoValue});
  }

  const Expressions& in_;
  std::vector<Step> steps_;
};

bool SameMatrix(const Function& f, ValueId a, ValueId b) {
  if (a == b) return true;
  const Value &x = f.value(a), &y = f.value(b);
  return x.type == y.type && x.data.size() == y.data.size() &&
         (x.data.data() == y.data.data() || std::memcmp(x.data.data(), y.data.data(), x.data.size()) == 0);
}

bool SameBlock(const Function& f, const Block& a, const Block& b) {
  return a.transposed == b.transposed && a.row == b.row && a.rows == b.rows && a.column == b.column &&
         a.columns == b.columns && SameMatrix(f, a.matrix, b.matrix);
}

// `first` may lack the products with h.
bool SameLayer(const Function& f, const Cell& first, const Cell& other) {
  if (first.kind != other.kind || first.units != other.units || first.reset_after != other.reset_after ||
      first.activation != other.activation || first.recurrent_activation != other.recurrent_activation)
    return false;
  for (size_t i = 0; i < other.gates.size(); ++i) {
    const GateWeights &a = first.gates[i], &b = other.gates[i];
    if (b.recurrent.matrix == kNoValue || !SameBlock(f, a.input, b.input)) return false;
    if (a.recurrent.matrix != kNoValue && !SameBlock(f, a.recurrent, b.recurrent)) return false;
    if (a.bias != b.bias || a.recurrent_bias != b.recurrent_bias) return false;
  }
  return true;
}

}  // namespace

std::vector<Step> FindSteps(const Expressions& in) {
  const auto& nodes = in.function().nodes;
  const bool any =
      std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node->is(Op::kUnpack); });
  return any ? Finder(in).Run() : std::vector<Step>();
}

std::vector<Chain> FindChains(const Expressions& in, const std::vector<Step>& steps) {
  std::multimap<ValueId, const Step*> by_x;
  for (const Step& step : steps) by_x.emplace(step.cell.x, &step);
  std::vector<Chain> out;
  for (const auto& node : in.function().nodes) {
    if (!node->is(Op::kUnpack) || node->results.size() < 2) continue;
    for (const bool reversed : {false, true}) {
      std::vector<ValueId> parts = node->results;
      if (reversed) std::reverse(parts.begin(), parts.end());
      const auto [first, last] = by_x.equal_range(parts[0]);
      for (auto start = first; start != last; ++start) {
        Chain chain{node.get(), reversed, {start->second}};
        for (size_t t = 1; t < parts.size() && chain.steps.size() == t; ++t) {
          const Step& before = *chain.steps.back();
          const auto [from, to] = by_x.equal_range(parts[t]);
          const auto next = std::find_if(from, to, [&](const auto& entry) {
            const Step& step = *entry.second;
            return step.h == before.next_h && step.c == before.next_c &&
                   SameLayer(in.function(), before.cell, step.cell);
          });
          if (next != to) chain.steps.push_back(next->second);
        }
        if (chain.steps.size() == parts.size()) out.push_back(std::move(chain));
      }
    }
  }
  return out;
}

}  // namespace fusebox::converter::outline
