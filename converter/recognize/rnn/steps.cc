// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/steps.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>

namespace fusebox::converter::recognize {
namespace {

class Finder {
 public:
  Finder(const View& in, const Node& unpack) : in_(in), unpack_(unpack) {}

  std::vector<Step> Run() {
    for (const auto& node : in_.function().nodes) {
      if (node->results.size() != 1) continue;
      const ValueId v = node->results[0];
      if (node->is(Op::kMul)) Lstm(v);
      else if (node->is(Op::kAdd) && in_.Producer(v, Op::kAdd) && Gru(v)) continue;
      else Simple(v);
    }
    return std::move(steps_);
  }

 private:
  bool IsPart(ValueId v) const { return in_.Producer(v) == &unpack_; }

  // The state that a gate reads besides its part of the input: kNoValue where it is folded; nothing when this
  // is no gate.
  std::optional<ValueId> StateOf(ValueId gate) const {
    const auto sum = ReadAffine(in_, ReadActivation(in_, gate));
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
    const Node* product = in_.Producer(next_h, Op::kMul);
    if (!product) return;
    for (size_t k = 0; k < 2; ++k) {
      const ValueId next_c = ReadActivation(in_, product->operands[1 - k]).inner;
      const Node* sum = in_.Producer(next_c, Op::kAdd);
      const auto h = sum ? StateOf(product->operands[k]) : std::nullopt;
      if (!h) continue;
      for (const ValueId part : sum->operands) {
        const Node* mul = in_.Producer(part, Op::kMul);
        if (!mul) continue;
        for (const ValueId c : mul->operands) {
          auto cell = MatchLstm(in_, next_h, next_c, *h, c);
          if (!cell || !IsPart(cell->x)) continue;
          steps_.push_back({.cell = *std::move(cell), .h = *h, .c = c, .next_h = next_h, .next_c = next_c});
          return;
        }
      }
    }
  }

  bool Gru(ValueId next_h) {
    for (const ValueId part : in_.Producer(next_h)->operands) {
      const Node* mul = in_.Producer(part, Op::kMul);
      if (!mul) continue;
      for (const ValueId h : mul->operands) {
        auto cell = MatchGru(in_, next_h, h);
        if (!cell || !IsPart(cell->x)) continue;
        steps_.push_back(
            {.cell = *std::move(cell), .h = h, .c = kNoValue, .next_h = next_h, .next_c = kNoValue});
        return true;
      }
    }
    return false;
  }

  void Simple(ValueId next_h) {
    const auto h = StateOf(next_h);
    if (!h) return;
    auto cell = MatchSimpleRnn(in_, next_h, *h);
    if (cell && IsPart(cell->x))
      steps_.push_back(
          {.cell = *std::move(cell), .h = *h, .c = kNoValue, .next_h = next_h, .next_c = kNoValue});
  }

  const View& in_;
  const Node& unpack_;
  std::vector<Step> steps_;
};

bool SameMatrix(const Function& f, ValueId a, ValueId b) {
  if (a == b) return true;
  const Value& x = f.value(a);
  const Value& y = f.value(b);
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
    const GateWeights& a = first.gates[i];
    const GateWeights& b = other.gates[i];
    if (b.recurrent.matrix == kNoValue || !SameBlock(f, a.input, b.input)) return false;
    if (a.recurrent.matrix != kNoValue && !SameBlock(f, a.recurrent, b.recurrent)) return false;
    if (a.bias != b.bias || a.recurrent_bias != b.recurrent_bias) return false;
  }
  return true;
}

}  // namespace

std::vector<Step> FindSteps(const View& in, const Node& unpack) { return Finder(in, unpack).Run(); }

std::vector<Chain> FindChains(const View& in, const Node& unpack, const std::vector<Step>& steps) {
  std::multimap<ValueId, const Step*> by_x;
  for (const Step& step : steps) by_x.emplace(step.cell.x, &step);
  std::vector<Chain> out;
  std::vector<ValueId> parts = unpack.results;
  if (parts.size() < 2) return out;
  for (const bool reversed : {false, true}) {
    if (reversed) std::ranges::reverse(parts);
    const auto [first, last] = by_x.equal_range(parts[0]);
    for (auto start = first; start != last; ++start) {
      Chain chain{&unpack, reversed, {start->second}};
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
  return out;
}

}  // namespace fusebox::converter::recognize
