// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/lstm_operands.h"

#include <string>
#include <vector>

#include "plugins/rnn/rules/builtin_activation.h"

namespace fusebox::rnn {

void CheckLstmLayer(const KerasLayer& layer) {
  layer.CheckOperand(layer.bias(), 1);
  layer.CheckConstant(layer.bias());
  layer.CheckKernels();
  layer.CheckBias(0);
  layer.CheckStates();
  layer.CheckSequence();
}

bool HasBuiltinActivations(const KerasLayer& layer) {
  return layer.recurrent_activation() == "sigmoid" && BuiltinActivationOf(layer.activation());
}

void CheckBuiltinActivations(const Site& site, const KerasLayer& layer) {
  BuiltinActivation(layer.activation());
  site.require(layer.recurrent_activation() == "sigmoid", "ATTR",
               "is " + std::string(layer.recurrent_activation()) + ", but the op's gates are always sigmoid",
               "attr recurrent_activation");
}

void PutLstmWeights(const KerasLayer& layer, Build& build, Value* operands) {
  const auto put_gates = [&](uint32_t first, Value stacked) {
    const std::vector<Value> gates = build.split(stacked, 0, 4);
    for (uint32_t gate = 0; gate < 4; ++gate) operands[first + gate] = gates[gate];
  };
  put_gates(0, build.transpose(build.in(layer.kernel()), {1, 0}));
  put_gates(4, layer.diagonal() ? build.reshape(build.in(layer.recurrent()), {-1})
                                : build.transpose(build.in(layer.recurrent()), {1, 0}));
  put_gates(11, build.in(layer.bias()));
}

}  // namespace fusebox::rnn
