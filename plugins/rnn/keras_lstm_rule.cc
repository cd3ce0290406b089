// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/keras_lstm_rule.h"

#include <string>
#include <vector>

#include "plugins/rnn/builtin_activation.h"
#include "plugins/rnn/keras_layer.h"

namespace fusebox::rnn {
namespace {

constexpr uint32_t kInitH = KerasLayer::kFirstState, kInitC = kInitH + 1;

KerasLayer LayerOf(const Site& site) { return {site, 2, 4}; }

// The 24 operands of the op. No peephole (9-11), no projection (16, 17), no layer normalisation (20-23).
std::vector<Value> LstmOperands(const KerasLayer& layer, Build& build) {
  std::vector<Value> operands(24, none);
  operands[0] = layer.Inputs(build);
  const auto put_gates = [&](uint32_t first, Value stacked) {
    const std::vector<Value> gates = build.split(stacked, 0, 4);
    for (uint32_t gate = 0; gate < 4; ++gate) operands[first + gate] = gates[gate];
  };
  put_gates(1, build.transpose(build.in(layer.kernel()), {1, 0}));
  put_gates(5, build.transpose(build.in(layer.recurrent()), {1, 0}));
  put_gates(12, build.in(layer.bias()));
  operands[18] = build.in(kInitH);
  operands[19] = build.in(kInitC);
  return operands;
}

}  // namespace

void KerasLstmRule::match(const Site& site) {
  const KerasLayer layer = LayerOf(site);
  layer.CheckArity();
  layer.CheckOperands();
  layer.CheckOperand(layer.bias(), 1);
  layer.CheckConstant(layer.bias());
  layer.CheckKernels();
  layer.CheckBias(0);
  layer.CheckStates();
  layer.CheckSequence();
  BuiltinActivation(layer.activation());
  site.require(layer.recurrent_activation() == "sigmoid", "ATTR",
               "is " + std::string(layer.recurrent_activation()) + ", but the op's gates are always sigmoid",
               "attr recurrent_activation");
}

void KerasLstmRule::rewrite(const Site& site, Build& build) {
  const KerasLayer layer = LayerOf(site);
  const std::vector<Value> operands = LstmOperands(layer, build);
  // Keras never clips the cell.
  const auto lstm = build.builtin("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, 3)
                        .attr("fused_activation_function", BuiltinActivation(layer.activation()))
                        .attr("cell_clip", 0.0)
                        .attr("proj_clip", 0.0)
                        .attr("time_major", layer.time_major());
  layer.SetOutputs(build, lstm[0]);
  build.result(kFirstFinalState, lstm[1]);
  build.result(kFirstFinalState + 1, lstm[2]);
}

}  // namespace fusebox::rnn
