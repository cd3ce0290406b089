// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/keras_bidirectional.h"

#include <string>
#include <vector>

#include "plugins/rnn/rules/builtin_activation.h"
#include "plugins/rnn/rules/keras_layer.h"
#include "plugins/rnn/rules/lstm_operands.h"

namespace fusebox::rnn {
namespace {

constexpr uint32_t kOperands = 11, kResults = 8, kMerged = 8;

KerasLayer Forward(const Site& site) { return {site, 2, 4, {"forward ", 0, 0}}; }
KerasLayer Backward(const Site& site) { return {site, 2, 4, {"backward ", 5, 4}}; }
bool Merged(const Site& site) { return site.attrs().b("merge", false); }

bool KeepsLast(const Site& site) { return Forward(site).SequenceIsLast() || Backward(site).SequenceIsLast(); }

// Does the op put both sequences side by side, or another one? TFLite (2.9) finds the rows of the output
// state at the pitch of the output, which is too wide then: with several rows batch after batch it would read
// and write beyond the state.
bool MergedByTheOp(const Site& site) {
  const KerasLayer layer = Forward(site);
  return Merged(site) && !KeepsLast(site) && (layer.time_major() || site.in(KerasLayer::kInputs).dim(0) == 1);
}

// Forward and backward sequence of the op's only output.
std::pair<Value, Value> Halves(const Site& site, Build& build, Value merged) {
  const int32_t ahead = static_cast<int32_t>(Forward(site).units());
  const int32_t back = static_cast<int32_t>(Backward(site).units());
  return {build.slice(merged, {0, 0, 0}, {-1, -1, ahead}),
          build.slice(merged, {0, 0, ahead}, {-1, -1, back})};
}

}  // namespace

void KerasBidirectionalRule::match(const Site& site) {
  site.arity(kOperands, kResults + (Merged(site) ? 1 : 0));
  for (const KerasLayer& layer : {Forward(site), Backward(site)}) {
    layer.CheckOperands();
    CheckLstmLayer(layer);
    CheckBuiltinActivations(site, layer);
  }
  // TFLite (2.9) holds the backward weights to the forward cell's size.
  const int64_t ahead = Forward(site).units(), back = Backward(site).units();
  site.require(ahead == back, "SHAPE",
               "has " + std::to_string(back) + " units and the forward layer " + std::to_string(ahead) +
                   ", but the op is for one size",
               Backward(site).subject(Backward(site).recurrent()));
}

void KerasBidirectionalRule::rewrite(const Site& site, Build& build) {
  const KerasLayer ahead = Forward(site), back = Backward(site);
  std::vector<Value> operands(48, none);
  operands[0] = build.in(KerasLayer::kInputs);
  PutLstmWeights(ahead, build, operands.data() + 1);
  PutLstmWeights(back, build, operands.data() + 18);
  for (uint32_t i = 0; i < 2; ++i) {
    operands[35 + i] = build.in(ahead.first_state() + i);
    operands[37 + i] = build.in(back.first_state() + i);
  }
  const bool merged = MergedByTheOp(site);
  const uint32_t outputs = merged ? 1 : 2;
  const auto lstm = build.builtin("BIDIRECTIONAL_SEQUENCE_LSTM", operands, outputs + 4)
                        .attr("fused_activation_function", BuiltinActivation(ahead.activation()))
                        .attr("cell_clip", 0.0)
                        .attr("proj_clip", 0.0)
                        .attr("merge_outputs", merged)
                        .attr("time_major", ahead.time_major());
  const auto [forward, backward] = merged ? Halves(site, build, lstm[0]) : std::pair{lstm[0], lstm[1]};
  const int axis = ahead.time_axis();
  build.result(ahead.last_output(), StepOf(build, forward, axis, true, false));
  build.result(back.last_output(), StepOf(build, backward, axis, false, false));
  const Value ahead_kept = ahead.SequenceIsLast() ? StepOf(build, forward, axis, true, true) : forward;
  const Value back_kept = back.SequenceIsLast() ? StepOf(build, backward, axis, false, true) : backward;
  build.result(ahead.sequence(), ahead_kept);
  build.result(back.sequence(), back_kept);
  for (uint32_t i = 0; i < 2; ++i) {
    build.result(ahead.first_final_state() + i, lstm[outputs + i]);
    build.result(back.first_final_state() + i, lstm[outputs + 2 + i]);
  }
  if (!Merged(site)) return;
  build.result(kMerged,
               merged ? lstm[0] : build.builtin("CONCATENATION", {ahead_kept, back_kept}).attr("axis", 2)[0]);
}

}  // namespace fusebox::rnn
