// SPDX-License-Identifier: Apache-2.0
#include "converter/quantize/ops8.h"

namespace fusebox::converter::quantize {

std::optional<WeightedForm> FormOf(const Node& node) {
  const OpInfo& info = Info(node.op);
  if (info.quantizes != Quantizes::kWeighted) return std::nullopt;
  const OperandList& in = info.operands;
  return WeightedForm{static_cast<size_t>(in.data), static_cast<size_t>(in.first_weights()),
                      static_cast<size_t>(in.bias), Has(node.op, kOneScale) ? -1 : info.channel_axis};
}

}  // namespace fusebox::converter::quantize
