// SPDX-License-Identifier: Apache-2.0
// BIDIRECTIONAL_SEQUENCE_LSTM has no integer form, but its two cells have one as
// UNIDIRECTIONAL_SEQUENCE_LSTM.
#include <algorithm>

#include "converter/quantize/ops8.h"
#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

// Operand numbers of the op, forward direction first. A direction has the operands from kInputWeights to
// kProjectionBias in the order of the unidirectional op, and two states.
constexpr size_t kWeights[] = {1, 18};
constexpr size_t kStates[] = {35, 37};
constexpr size_t kAuxiliary = 39;
constexpr size_t kWeightCount = kLstmOutputState - kInputWeights;

bool IsMerged(const Node& node) { return node.attrs.b("merge_outputs", false); }
bool IsTimeMajor(const Node& node) { return node.attrs.b("time_major", true); }

// Returns why neither half would become integers, or "".
std::string WhyWhole(const Function& f, const Node& node) {
  const auto present = [](ValueId v) { return v != kNoValue; };
  if (node.operands.size() < kAuxiliary || !present(node.operands[0])) return "it lacks operands";
  if (node.results.size() < (IsMerged(node) ? 1 : 2)) return "it lacks results";
  if (std::any_of(node.operands.begin() + kAuxiliary, node.operands.end(), present))
    return "it has an auxiliary input";
  if (node.attrs.str("fused_activation_function", "NONE") != "TANH") return "its activation is not TANH";
  for (size_t i = kWeights[0]; i < kStates[0]; ++i) {
    const ValueId v = node.operands[i];
    if (!present(v)) continue;
    if (!f.value(v).is_const()) return "operand " + std::to_string(i) + " is not constant";
    if (f.value(v).type.dtype != DType::kF32)
      return "its weights are " + ToString(f.value(v).type.dtype) + " already";
  }
  if (f.value(node.results[0]).type.shape.rank() != 3) return "the rank of its output is unknown";
  return "";
}

class Halves : Rewriter {
 public:
  Halves(Context& context, Function& f) : Rewriter(f), context_(context) {}

  void Run() {
    (void)Walk([&](Node& node) -> Status {
      if (!node.is(Op::kBidirectionalSequenceLstm)) return {};
      const std::string why = WhyWhole(f(), node);
      if (why.empty()) Split(node);
      else context_.Note(Place(node) + ": is not split into two integer LSTM ops: " + why);
      return {};
    });
  }

 private:
  void Split(Node& node) {
    const bool merged = IsMerged(node);
    const ValueId x = node.operands[0];
    const ValueId time = I32({IsTimeMajor(node) ? 0 : 1});
    const ValueId forward = merged ? f().AddValue(SequenceOf(node, 0)) : node.results[0];
    const ValueId backward = merged ? f().AddValue(SequenceOf(node, 1)) : node.results[1];
    const ValueId reversed_input = Typed(Op::kReverseV2, {x, time}, type(x));
    const ValueId from_end = f().AddValue(type(backward));
    EmitHalf(node, 0, x, forward);
    EmitHalf(node, 1, reversed_input, from_end);
    EmitTyped(Op::kReverseV2, {from_end, time}, {}).results = {backward};
    if (merged) {
      const Attrs attrs = MakeAttrs("axis", 2, "fused_activation_function", "NONE");
      EmitTyped(Op::kConcatenation, {forward, backward}, {}, attrs).results = {node.results[0]};
    }
    Drop(node);
  }

  // The type of the sequence of one direction.
  Type SequenceOf(const Node& node, size_t direction) const {
    const ValueId* const weights = node.operands.data() + kWeights[direction] - kInputWeights;
    const ValueId projection = weights[kProjection];
    Type out = type(node.results[0]);
    out.shape.dims().back() = shape(projection == kNoValue ? weights[kBias + 1] : projection)[0];
    return out;
  }

  void EmitHalf(const Node& node, size_t direction, ValueId x, ValueId sequence) {
    ValueIds operands = {x};
    ValueIds results = {sequence};
    for (size_t i = 0; i < kWeightCount; ++i) operands.push_back(node.operands[kWeights[direction] + i]);
    const size_t first = (IsMerged(node) ? 1 : 2) + 2 * direction;
    for (size_t i = 0; i < 2; ++i) {
      const ValueId state = node.operands[kStates[direction] + i];
      const bool has = first + i < node.results.size();
      operands.push_back(state);
      results.push_back(has ? node.results[first + i] : f().AddValue(type(state)));
    }
    Attrs attrs = node.attrs;
    attrs.Erase("merge_outputs");
    attrs.Set("time_major", IsTimeMajor(node));
    EmitTyped(Op::kUnidirectionalSequenceLstm, std::move(operands), {}, std::move(attrs)).results = results;
  }

  Context& context_;
};

}  // namespace

void SplitBidirectional(Context& context, Function& f) { Halves(context, f).Run(); }

}  // namespace fusebox::converter::quantize
