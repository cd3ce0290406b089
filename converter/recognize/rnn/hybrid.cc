// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/hybrid.h"

namespace fusebox::converter::recognize {
namespace {

bool HasOneScale(const Value& weights) {
  const Quant* const quant = weights.quant.get();
  return weights.type.dtype == DType::kI8 && quant != nullptr && quant->scales.size() == 1 &&
         (quant->zero_points.empty() || quant->zero_points[0] == 0);
}

}  // namespace

bool IsHybrid(const Function& weights, const Cell& cell) {
  const Block& first = cell.gates[0].input;
  for (Block GateWeights::* const member : {&GateWeights::input, &GateWeights::recurrent}) {
    // A folded state has no weights.
    if ((cell.gates[0].*member).matrix == kNoValue) continue;
    const Value& one = weights.value((cell.gates[0].*member).matrix);
    if (!HasOneScale(one)) return false;
    for (const GateWeights& gate : cell.gates) {
      const Block& block = gate.*member;
      const Value& value = weights.value(block.matrix);
      if (block.joined || block.asymmetric != first.asymmetric) return false;
      if (!HasOneScale(value) || value.quant->scales[0] != one.quant->scales[0]) return false;
    }
  }
  return true;
}

}  // namespace fusebox::converter::recognize
