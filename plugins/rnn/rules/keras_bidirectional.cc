// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/rules.h"

#include <string>
#include <vector>

#include "plugins/rnn/rules/keras_layer.h"

namespace fusebox::rnn {
namespace {

constexpr uint32_t kOperands = 11;
constexpr uint32_t kResults = 8;
constexpr uint32_t kMerged = 8;

KerasLayer Forward(const Site& site) { return {site, 2, 4, {"forward ", 0, 0}}; }
KerasLayer Backward(const Site& site) { return {site, 2, 4, {"backward ", 5, 4}}; }
bool Merged(const Site& site) { return site.attrs().b("merge", false); }

bool KeepsLast(const Site& site) { return Forward(site).SequenceIsLast() || Backward(site).SequenceIsLast(); }

// True if the op itself concatenates the sequences; otherwise a CONCATENATION does. With merge_outputs
// TFLite 2.9 addresses the rows of the output state with the row stride of the output, which is too large:
// with several batch-major rows it would access memory beyond the state.
bool MergedByOp(const Site& site) {
  const KerasLayer layer = Forward(site);
  return Merged(site) && !KeepsLast(site) && (layer.time_major() || site.in(KerasLayer::kInputs).dim(0) == 1);
}

// Forward and backward sequence of the merged output.
std::pair<Value, Value> SplitMerged(const Site& site, Build& build, Value merged) {
  const int32_t forward = static_cast<int32_t>(Forward(site).units());
  const int32_t backward = static_cast<int32_t>(Backward(site).units());
  return {build.slice(merged, {0, 0, 0}, {-1, -1, forward}),
          build.slice(merged, {0, 0, forward}, {-1, -1, backward})};
}

}  // namespace

void KerasBidirectionalRule::match(const Site& site) {
  site.arity(kOperands, kResults + (Merged(site) ? 1 : 0));
  for (const KerasLayer& layer : {Forward(site), Backward(site)}) {
    layer.CheckLayer();
    layer.builtin_activation();
    site.require(
        layer.HasBuiltinActivations(), "ATTR",
        "is " + std::string(layer.recurrent_activation()) + ", but the op's gates are always sigmoid",
        "attr recurrent_activation");
  }
  // TFLite 2.9 requires backward weights of the size of the forward cell.
  const int64_t forward = Forward(site).units();
  const int64_t backward = Backward(site).units();
  site.require(forward == backward, "SHAPE",
               "has " + std::to_string(backward) + " units, but the forward layer has " +
                   std::to_string(forward) + "; the op requires equal sizes",
               Backward(site).subject(Backward(site).recurrent()));
}

void KerasBidirectionalRule::rewrite(const Site& site, Build& build) {
  const KerasLayer forward = Forward(site);
  const KerasLayer backward = Backward(site);
  std::vector<Value> operands(48, no_value);
  operands[0] = build.in(KerasLayer::kInputs);
  forward.SetLstmWeights(build, operands.data() + 1);
  backward.SetLstmWeights(build, operands.data() + 18);
  for (uint32_t i = 0; i < 2; ++i) {
    operands[35 + i] = build.in(forward.first_state() + i);
    operands[37 + i] = build.in(backward.first_state() + i);
  }
  const bool merged = MergedByOp(site);
  const uint32_t outputs = merged ? 1 : 2;
  const auto lstm = build.builtin("BIDIRECTIONAL_SEQUENCE_LSTM", operands, outputs + 4)
                        .attr("fused_activation_function", forward.builtin_activation())
                        .attr("cell_clip", 0.0)
                        .attr("proj_clip", 0.0)
                        .attr("merge_outputs", merged)
                        .attr("asymmetric_quantize_inputs", forward.asymmetric())
                        .attr("time_major", forward.time_major());
  const auto [forward_sequence, backward_sequence] =
      merged ? SplitMerged(site, build, lstm[0]) : std::pair{lstm[0], lstm[1]};
  const int axis = forward.time_axis();
  build.result(forward.last_output(), StepOf(build, forward_sequence, axis, true, false));
  build.result(backward.last_output(), StepOf(build, backward_sequence, axis, false, false));
  const Value forward_result =
      forward.SequenceIsLast() ? StepOf(build, forward_sequence, axis, true, true) : forward_sequence;
  const Value backward_result =
      backward.SequenceIsLast() ? StepOf(build, backward_sequence, axis, false, true) : backward_sequence;
  build.result(forward.sequence(), forward_result);
  build.result(backward.sequence(), backward_result);
  for (uint32_t i = 0; i < 2; ++i) {
    build.result(forward.first_final_state() + i, lstm[outputs + i]);
    build.result(backward.first_final_state() + i, lstm[outputs + 2 + i]);
  }
  if (!Merged(site)) return;
  build.result(kMerged,
               merged ? lstm[0]
                      : build.builtin("CONCATENATION", {forward_result, backward_result}).attr("axis", 2)[0]);
}

}  // namespace fusebox::rnn
