// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/hybrid.h"

#include "host/base/status.h"

namespace fusebox::converter::recognize {
namespace {

bool SameSteps(const Value& a, const Value& b) {
  return a.type.dtype == b.type.dtype && (a.quant == nullptr) == (b.quant == nullptr) &&
         (a.quant == nullptr || a.quant->scales[0] == b.quant->scales[0]);
}

}  // namespace

Status CheckWeightTypes(const Function& weights, const Cell& cell) {
  const Block& first = cell.gates[0].input;
  for (Block GateWeights::* const member : {&GateWeights::input, &GateWeights::recurrent}) {
    // A folded state has no weights.
    if ((cell.gates[0].*member).matrix == kNoValue) continue;
    const Value& one = weights.value((cell.gates[0].*member).matrix);
    for (const GateWeights& gate : cell.gates) {
      const Block& block = gate.*member;
      const Value& value = weights.value(block.matrix);
      if (value.type.dtype != weights.value(first.matrix).type.dtype || !SameSteps(one, value))
        return Unsupported("weights of " + ToString(value.type) + " with several scales or types");
      if (block.asymmetric != first.asymmetric)
        return Unsupported("products that quantize their inputs in two ways");
    }
  }
  return {};
}

bool QuantizesAsymmetrically(const Cell& cell) { return cell.gates[0].input.asymmetric; }

}  // namespace fusebox::converter::recognize
