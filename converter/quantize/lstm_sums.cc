// SPDX-License-Identifier: Apache-2.0
#include "converter/quantize/ops8.h"

namespace fusebox::converter::quantize {
namespace {

constexpr size_t kOutputGate = 3;

class Sums : Rewriter {
 public:
  Sums(Function& f, const Node& lstm, ValueId h, ValueId c)
      : Rewriter(f), lstm_(lstm), x_(lstm.operands[0]), h_(h), before_(c), after_(lstm.results[2]) {
    const int64_t batch = f.value(c).type.shape[0];
    row_ = {DType::kF32, {batch, f.value(c).type.shape[1]}};
    column_ = {DType::kF32, {batch, 1}};
  }

  // W x; plus R h; plus the peephole: each is stored in 16 bits.
  std::vector<ValueId> OfGate(size_t gate) {
    std::vector<ValueId> sums = {Times(x_, kInputWeights + gate)};
    sums.push_back(Add(Op::kAdd, {sums.back(), Times(h_, kRecurrentWeights + gate)}));
    const ValueId peephole = Peephole(gate);
    if (peephole == kNoValue) return sums;
    const ValueId through = Add(Op::kMul, {gate == kOutputGate ? after_ : before_, peephole});
    sums.push_back(Add(Op::kAdd, {sums.back(), through}));
    return sums;
  }

  // The projection's input.
  ValueId Hidden() {
    ValueId sum = OfGate(kOutputGate).back();
    if (Operand(kLayerNorm + kOutputGate) != kNoValue)
      sum = Add(Op::kMul, {Normal(sum), Operand(kLayerNorm + kOutputGate)});
    sum = Add(Op::kAdd, {sum, Operand(kBias + kOutputGate)});
    return Add(Op::kMul, {Add(Op::kLogistic, {sum}), Add(Op::kTanh, {after_})});
  }

 private:
  ValueId Operand(size_t i) const { return i < lstm_.operands.size() ? lstm_.operands[i] : kNoValue; }
  ValueId Peephole(size_t gate) const {
    constexpr size_t kCellGate = 2;
    if (gate == kCellGate) return kNoValue;
    return Operand(kPeephole + (gate == kOutputGate ? 2 : gate));
  }
  ValueId Add(Op op, ValueIds operands) { return Add(op, std::move(operands), row_); }
  ValueId Add(Op op, ValueIds operands, const Type& type, Attrs attrs = {}) {
    return Typed(op, std::move(operands), type, std::move(attrs));
  }
  // Diagonal recurrent weights are a vector.
  ValueId Times(ValueId v, size_t weights) {
    const ValueId w = Operand(weights);
    if (rank(w) == 1) return Add(Op::kMul, {v, w});
    return Add(Op::kFullyConnected, {v, w, kNoValue});
  }

  ValueId Mean(ValueId v) { return Add(Op::kMean, {v, I32({1})}, column_, MakeAttrs("keep_dims", true)); }
  // Normalizes to mean 0 and variance 1.
  ValueId Normal(ValueId v) {
    const ValueId centerd = Add(Op::kSub, {v, Mean(v)});
    const ValueId variance = Mean(Add(Op::kMul, {centerd, centerd}));
    const ValueId least = Scalar(DType::kF32, 1e-8f);
    return Add(Op::kMul, {centerd, Add(Op::kRsqrt, {Add(Op::kAdd, {variance, least}, column_)}, column_)});
  }

  const Node& lstm_;
  ValueId x_, h_, before_, after_;  // cell state before and after the step
  Type row_, column_;
};

}  // namespace

std::vector<LstmSum> AddLstmSums(Function& f, const Node& lstm, ValueId h, ValueId c) {
  Sums sums(f, lstm, h, c);
  std::vector<LstmSum> out;
  const auto has = [&](size_t i) { return i < lstm.operands.size() && lstm.operands[i] != kNoValue; };
  for (size_t gate = 0; gate < kLstmGates; ++gate) {
    if (!has(kLayerNorm + gate)) continue;
    for (const ValueId v : sums.OfGate(gate)) out.push_back({gate, v});
  }
  if (has(kProjection)) out.push_back({kLstmHidden, sums.Hidden()});
  return out;
}

}  // namespace fusebox::converter::quantize
