// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/cell.h"

#include <array>
#include <utility>

namespace fusebox::converter::recognize {
namespace {

// Both orders of a commutative op's operands.
std::array<std::pair<ValueId, ValueId>, 2> Orders(const Node& node) {
  return {{{node.operands[0], node.operands[1]}, {node.operands[1], node.operands[0]}}};
}

// The other operand of a product with `v`.
ValueId Cofactor(const View& in, ValueId product, ValueId v) {
  const Node* mul = in.Producer(product, Op::kMul);
  if (!mul) return kNoValue;
  for (const auto& [a, b] : Orders(*mul))
    if (a == v) return b;
  return kNoValue;
}

class Matcher {
 public:
  Matcher(const View& in, ValueId h) : in_(in), h_(h) {}

  Result<Cell> Lstm(Cell::Kind kind, ValueId next_h, ValueId next_c, ValueId c) {
    cell_.kind = kind;
    ValueId output = kNoValue;
    if (const Node* mul = in_.Producer(next_h, Op::kMul)) {
      for (const auto& [a, b] : Orders(*mul)) {
        const Activated squashed = ReadActivation(in_, b);
        if (squashed.inner != next_c || squashed.fused) continue;
        output = a;
        cell_.activation = squashed.name;
      }
    }
    if (output == kNoValue)
      return Unsupported("the next h is " + in_.Text(next_h) + ", not o * activation(next c)");
    ValueId forget = kNoValue;
    ValueId added = kNoValue;
    if (const Node* sum = in_.Producer(next_c, Op::kAdd)) {
      for (const auto& [a, b] : Orders(*sum)) {
        const ValueId gate = Cofactor(in_, a, c);
        if (gate == kNoValue || forget != kNoValue) continue;
        forget = gate;
        added = b;
      }
    }
    if (forget == kNoValue) return Unsupported("the next c is " + in_.Text(next_c) + ", not f * c + i * g");
    const Node* product = in_.Producer(added, Op::kMul);
    if (!product) return Unsupported("what is added to f * c is " + in_.Text(added) + ", not i * g");
    cell_.recurrent_activation = ReadActivation(in_, output).name;
    auto [input, candidate] = Orders(*product)[0];
    if (!Are(input, candidate)) std::swap(input, candidate);
    if (!Are(input, candidate)) return Activations({input, candidate});
    if (ReadActivation(in_, forget).name != cell_.recurrent_activation) return Activations({forget, output});
    for (const ValueId gate : {input, forget, candidate, output}) FUSEBOX_TRY(AddGate(gate));
    return Done();
  }

  Result<Cell> Gru(ValueId next_h) {
    cell_.kind = Cell::Kind::kGru;
    ValueId update = kNoValue;
    ValueId candidate = kNoValue;
    if (const Node* sum = in_.Producer(next_h, Op::kAdd)) {
      for (const auto& [kept, fresh] : Orders(*sum)) {
        const ValueId z = Cofactor(in_, kept, h_);
        const ValueId other = z == kNoValue ? kNoValue : ComplementCofactor(fresh, z);
        if (other == kNoValue) continue;
        update = z;
        candidate = other;
      }
    }
    if (update == kNoValue)
      return Unsupported("the next h is " + in_.Text(next_h) + ", not z * h + (1 - z) * g");
    const Activated squashed = ReadActivation(in_, candidate);
    cell_.activation = squashed.name;
    cell_.recurrent_activation = ReadActivation(in_, update).name;
    FUSEBOX_TRY(AddGate(update));
    ValueId reset = kNoValue;
    auto fresh = ResetBefore(squashed, reset);
    if (!fresh) {
      reset = kNoValue;
      fresh = ResetAfter(squashed, reset);
    }
    if (!fresh) return std::unexpected(std::move(fresh.error()));
    if (ReadActivation(in_, reset).name != cell_.recurrent_activation) return Activations({update, reset});
    FUSEBOX_TRY(AddGate(reset));
    cell_.gates.push_back(*std::move(fresh));
    if (cell_.reset_after)
      for (size_t gate : {0u, 1u}) cell_.gates[gate].recurrent_bias.resize(cell_.gates[gate].bias.size());
    return Done();
  }

  Result<Cell> SimpleRnn(ValueId next_h) {
    cell_.kind = Cell::Kind::kSimpleRnn;
    cell_.activation = ReadActivation(in_, next_h).name;
    FUSEBOX_TRY(AddGate(next_h));
    return Done();
  }

 private:
  // The gate's activation and the candidate's.
  bool Are(ValueId gate, ValueId candidate) const {
    return ReadActivation(in_, gate).name == cell_.recurrent_activation &&
           ReadActivation(in_, candidate).name == cell_.activation;
  }

  std::unexpected<Error> Activations(std::pair<ValueId, ValueId> gates) const {
    return Unsupported("its gates differ in their activation: " + in_.Text(gates.first) + " and " +
                       in_.Text(gates.second));
  }

  // g of (1 - z) * g.
  ValueId ComplementCofactor(ValueId v, ValueId z) const {
    const Node* mul = in_.Producer(v, Op::kMul);
    if (!mul) return kNoValue;
    for (const auto& [a, b] : Orders(*mul)) {
      const Node* sub = in_.Producer(a, Op::kSub);
      if (sub && sub->operands[1] == z && in_.IsFull(sub->operands[0], 1.0f)) return b;
    }
    return kNoValue;
  }

  // x W + (r * h) R + b.
  Result<GateWeights> ResetBefore(const Activated& candidate, ValueId& reset) {
    FUSEBOX_ASSIGN(AffineSum sum, ReadAffine(in_, candidate));
    GateWeights out;
    out.bias = std::move(sum.bias);
    for (const Product& product : sum.products) {
      const ValueId gate = Cofactor(in_, product.source, h_);
      if (gate == kNoValue) {
        FUSEBOX_TRY(SetInput(product, out));
      } else {
        if (reset != kNoValue) return Unsupported("the candidate holds two products with r * h");
        reset = gate;
        out.recurrent = product.weights;
      }
    }
    if (reset == kNoValue)
      return Unsupported("the candidate " + in_.Text(candidate.inner) + " knows no reset gate");
    return out;
  }

  // x W + b + r * (h R + b').
  Result<GateWeights> ResetAfter(const Activated& candidate, ValueId& reset) {
    std::vector<ValueId> parts;
    FUSEBOX_TRY(Flatten(candidate.inner, candidate.fused, parts));
    GateWeights out;
    cell_.reset_after = true;
    for (const ValueId part : parts) {
      if (const Node* mul = in_.Producer(part, Op::kMul)) {
        if (reset != kNoValue) return Unsupported("the candidate holds two products of gates");
        FUSEBOX_TRY(ResetProduct(*mul, reset, out));
        continue;
      }
      FUSEBOX_ASSIGN(const AffineSum sum, AffinePart(part, candidate.inner));
      for (const Product& product : sum.products) FUSEBOX_TRY(SetInput(product, out));
      if (out.bias.size() < sum.bias.size()) out.bias.resize(sum.bias.size());
      for (size_t i = 0; i < sum.bias.size(); ++i) out.bias[i] += sum.bias[i];
    }
    if (reset == kNoValue)
      return Unsupported("the candidate " + in_.Text(candidate.inner) + " knows no reset gate");
    return out;
  }

  // A part of a sum; a bias may be a vector that is as wide as the whole.
  Result<AffineSum> AffinePart(ValueId part, ValueId whole) const {
    const Value& value = in_.function().value(part);
    if (!value.is_const() || value.type.dtype != DType::kF32) return ReadAffine(in_, part);
    const Shape& shape = in_.function().value(whole).type.shape;
    const auto values = value.data.As<float>();
    if (shape.rank() != 2 || static_cast<int64_t>(values.size()) != shape[1])
      return Unsupported("a constant " + ToString(value.type) + " is added to the candidate");
    return AffineSum{{}, {values.begin(), values.end()}};
  }

  // r * (h R + b').
  Status ResetProduct(const Node& mul, ValueId& reset, GateWeights& out) const {
    for (const auto& [gate, state] : Orders(mul)) {
      auto sum = ReadAffine(in_, state);
      if (!sum || sum->products.size() > 1 || (sum->products.empty() && !FromZeros())) continue;
      if (!sum->products.empty() && sum->products[0].source != h_) continue;
      if (ReadActivation(in_, gate).name != cell_.recurrent_activation) continue;
      reset = gate;
      if (!sum->products.empty()) out.recurrent = sum->products[0].weights;
      out.recurrent_bias = std::move(sum->bias);
      return {};
    }
    return Unsupported("the candidate's product is not r * (h R + b)");
  }

  Status Flatten(ValueId v, bool ignore_activation, std::vector<ValueId>& parts) const {
    constexpr size_t kMostParts = 16;
    const Node* node = in_.Producer(v);
    const bool sum = node && node->is(Op::kAdd) && (ignore_activation || in_.Producer(v, Op::kAdd));
    if (!sum) {
      parts.push_back(v);
      return {};
    }
    if (parts.size() > kMostParts) return Unsupported("the candidate is a sum of too many parts");
    FUSEBOX_TRY(Flatten(node->operands[0], false, parts));
    return Flatten(node->operands[1], false, parts);
  }

  Status SetInput(const Product& product, GateWeights& gate) {
    if (product.source == h_) return Unsupported("the candidate holds a product with h that no gate resets");
    if (cell_.x == kNoValue) cell_.x = product.source;
    if (product.source != cell_.x)
      return Unsupported("its gates read two inputs: " + in_.Text(cell_.x) + " and " +
                         in_.Text(product.source));
    if (gate.input.matrix != kNoValue) return Unsupported("a gate holds two products with the input");
    gate.input = product.weights;
    return {};
  }

  // activation(x W + h R + b), whatever the activation.
  Status AddGate(ValueId v) {
    const Activated activated = ReadActivation(in_, v);
    FUSEBOX_ASSIGN(AffineSum sum,
                   convolves() ? ReadConvolutions(in_, activated) : ReadAffine(in_, activated));
    GateWeights gate;
    for (const Product& product : sum.products) {
      if (product.source != h_) {
        FUSEBOX_TRY(SetInput(product, gate));
        continue;
      }
      if (gate.recurrent.matrix != kNoValue) return Unsupported("a gate holds two products with h");
      gate.recurrent = product.weights;
    }
    gate.bias = std::move(sum.bias);
    cell_.gates.push_back(std::move(gate));
    return {};
  }

  bool convolves() const { return cell_.kind == Cell::Kind::kConvLstm; }
  // Returns whether the gate has weights for h under a window of the same size as x's window.
  bool Recurs(const GateWeights& gate) const {
    int64_t rows = cell_.units;
    for (const int64_t size : gate.input.window.kernel) rows *= size;
    return gate.recurrent.columns == cell_.units && gate.recurrent.rows == rows;
  }
  // All gates have one window, and h is convolved to its own size.
  Status CheckWindows() const {
    const Window& window = cell_.gates[0].input.window;
    Window same = window;
    same.strides.assign(window.strides.size(), 1);
    same.dilations = same.strides;
    same.padding = "SAME";
    for (const GateWeights& gate : cell_.gates) {
      if (gate.input.window != window) return Unsupported("its gates differ in their windows");
      if (gate.recurrent.window != same) return Unsupported("its state is convolved by another window");
    }
    return {};
  }

  bool FromZeros() const { return h_ == kNoValue || in_.IsFull(h_, 0.0f); }

  Result<Cell> Done() {
    if (cell_.x == kNoValue) return Unsupported("it has no input");
    cell_.units = static_cast<int64_t>(cell_.gates[0].bias.size());
    const int64_t inputs = cell_.gates[0].input.rows;
    for (const GateWeights& gate : cell_.gates) {
      if (gate.input.matrix == kNoValue) return Unsupported("a gate does not read the input");
      const bool folded = gate.recurrent.matrix == kNoValue && FromZeros();
      if (gate.recurrent.matrix == kNoValue && !folded) return Unsupported("a gate does not read h");
      const bool fits = (folded || Recurs(gate)) && gate.input.rows == inputs &&
                        gate.input.columns == cell_.units &&
                        static_cast<int64_t>(gate.bias.size()) == cell_.units;
      if (!fits) return Unsupported("its gates differ in their sizes");
    }
    if (convolves()) FUSEBOX_TRY(CheckWindows());
    if (cell_.recurrent_activation == "linear") return Unsupported("its gates have no activation");
    return std::move(cell_);
  }

  const View& in_;
  ValueId h_;
  Cell cell_;
};

}  // namespace

const char* CompositeName(Cell::Kind kind) {
  switch (kind) {
    case Cell::Kind::kLstm: return "keras.lstm";
    case Cell::Kind::kGru: return "keras.gru";
    case Cell::Kind::kSimpleRnn: return "keras.simple_rnn";
    case Cell::Kind::kConvLstm: return "keras.conv_lstm";
  }
  return "";
}

Result<Cell> MatchLstm(const View& in, ValueId next_h, ValueId next_c, ValueId h, ValueId c) {
  return Matcher(in, h).Lstm(Cell::Kind::kLstm, next_h, next_c, c);
}
Result<Cell> MatchConvLstm(const View& in, ValueId next_h, ValueId next_c, ValueId h, ValueId c) {
  return Matcher(in, h).Lstm(Cell::Kind::kConvLstm, next_h, next_c, c);
}
Result<Cell> MatchGru(const View& in, ValueId next_h, ValueId h) { return Matcher(in, h).Gru(next_h); }
Result<Cell> MatchSimpleRnn(const View& in, ValueId next_h, ValueId h) {
  return Matcher(in, h).SimpleRnn(next_h);
}

}  // namespace fusebox::converter::recognize
