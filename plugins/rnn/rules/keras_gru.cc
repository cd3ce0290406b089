// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/rules.h"

#include <string>

#include "plugins/rnn/rules/keras_layer.h"
#include "plugins/rnn/rules/keras_mask.h"

namespace fusebox::rnn {
namespace {

KerasLayer GruLayerOf(const Site& site) { return {site, 1, 3}; }

bool ResetAfter(const Site& site, const KerasLayer& layer) {
  return site.attrs().b("reset_after", site.in(layer.bias()).rank() == 2);
}

void CheckBias(const Site& site, const KerasLayer& layer) {
  const Tensor bias = site.in(layer.bias());
  site.require(bias.present(), "ARITY", "is absent", layer.subject(layer.bias()));
  site.require(bias.rank() >= 0, "RANK", "has an unknown rank", layer.subject(layer.bias()));
  const bool after = ResetAfter(site, layer);
  layer.CheckOperand(layer.bias(), after ? 2 : 1);
  layer.CheckConstant(layer.bias());
  layer.CheckBias(after ? 1 : 0);
  site.require(
      !after || bias.dim(0) == 2, "SHAPE",
      "has " + std::to_string(bias.dim(0)) + " rows, expected one for the input and one for the state",
      layer.subject(layer.bias()));
}

}  // namespace

void KerasGruRule::match(const Site& site) {
  site.require(site.options().s("gru", "custom") == "custom", "OPTION",
               "allows builtin ops only; the loop remains", "option gru");
  const KerasLayer layer = GruLayerOf(site);
  layer.CheckArity();
  layer.CheckOperands();
  layer.CheckKernels();
  CheckBias(site, layer);
  layer.CheckStates();
  layer.CheckSequence();
  layer.CheckMask();
  layer.CheckActivations();
}

void KerasGruRule::rewrite(const Site& site, Build& build) {
  const KerasLayer layer = GruLayerOf(site);
  const bool after = ResetAfter(site, layer);
  const MaskedSteps steps(site, layer, build);
  const Value weights = build.transpose(build.in(layer.kernel()), {1, 0});
  const Value recurrent = build.transpose(build.in(layer.recurrent()), {1, 0});
  Value bias = build.in(layer.bias());
  Value recurrent_bias = no_value;
  if (after) {
    const std::vector<Value> rows = build.split(bias, 0, 2);
    bias = build.reshape(rows[0], {-1});
    recurrent_bias = build.reshape(rows[1], {-1});
  }
  auto gru =
      build
          .custom("fusebox.gru",
                  {steps.inputs(), build.in(layer.first_state()), weights, recurrent, bias, recurrent_bias},
                  2)
          .attr("time_major", steps.time_major())
          .attr("reset_after", after)
          .attr("activation", layer.activation())
          .attr("recurrent_activation", layer.recurrent_activation());
  if (layer.asymmetric()) gru.attr("asymmetric_quantize_inputs", true);
  layer.SetOutputs(build, steps.Outputs(build, gru[0]));
  build.result(layer.first_final_state(),
               steps.FinalState(build, gru[0], build.in(layer.first_state()), gru[1]));
}

}  // namespace fusebox::rnn
