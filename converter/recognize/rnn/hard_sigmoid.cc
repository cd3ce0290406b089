// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/hard_sigmoid.h"

#include <array>
#include <utility>

namespace fusebox::converter::recognize {
namespace {

// Returns the other operand of a commutative op, one of whose operands is this number, or kNoValue for
// another op.
ValueId Beside(const View& in, const Node* node, float number) {
  if (!node || node->operands.size() != 2) return kNoValue;
  const ValueId a = node->operands[0];
  const ValueId b = node->operands[1];
  if (in.IsFull(b, number)) return a;
  return in.IsFull(a, number) ? b : kNoValue;
}

// Returns the value that is multiplied by 1 / divisor, or kNoValue if there is none.
ValueId Scaled(const View& in, ValueId v, float divisor) {
  const Node* div = in.Producer(v, Op::kDiv);
  if (div && in.IsFull(div->operands[1], divisor)) return div->operands[0];
  return Beside(in, in.Producer(v, Op::kMul), 1 / divisor);
}

// Returns the value that is clipped to 0 and 1, or kNoValue if there is none.
ValueId Clipped(const View& in, ValueId v) {
  if (const Node* relu = in.Producer(v, Op::kRelu0To1)) return relu->operands[0];
  if (const ValueId low = Beside(in, in.Producer(v, Op::kMaximum), 0); low != kNoValue)
    return Beside(in, in.Producer(low, Op::kMinimum), 1);
  if (const ValueId high = Beside(in, in.Producer(v, Op::kMinimum), 1); high != kNoValue)
    return Beside(in, in.Producer(high, Op::kMaximum), 0);
  return kNoValue;
}

// Returns x of relu6(x + 3), with the activation as an op or fused into the sum, or kNoValue if there is
// none.
ValueId Shifted(const View& in, ValueId v) {
  const Node* node = in.Producer(v);
  if (!node) return kNoValue;
  if (node->is(Op::kRelu6)) node = in.Producer(node->operands[0], Op::kAdd);
  else if (!node->is(Op::kAdd) || node->attrs.str("fused_activation_function", "NONE") != "RELU6")
    return kNoValue;
  return Beside(in, node, 3);
}

}  // namespace

std::optional<Activated> ReadHardSigmoid(const View& in, ValueId v) {
  constexpr std::array<std::pair<float, const char*>, 2> kLines = {
      {{5.0f, "hard_sigmoid"}, {6.0f, "hard_sigmoid_of_keras_3"}}};
  const ValueId line = Beside(in, in.Producer(Clipped(in, v), Op::kAdd), 0.5f);
  for (const auto& [divisor, name] : kLines)
    if (const ValueId x = Scaled(in, line, divisor); x != kNoValue) return Activated{name, x, false};
  if (const ValueId x = Shifted(in, Scaled(in, v, 6)); x != kNoValue)
    return Activated{kLines[1].second, x, false};
  return std::nullopt;
}

}  // namespace fusebox::converter::recognize
