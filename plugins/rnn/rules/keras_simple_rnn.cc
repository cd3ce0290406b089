// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/rules.h"

#include "plugins/rnn/rules/keras_layer.h"
#include "plugins/rnn/rules/keras_mask.h"

namespace fusebox::rnn {
namespace {

KerasLayer SimpleRnnLayerOf(const Site& site) { return {site, 1, 1}; }

}  // namespace

void KerasSimpleRnnRule::match(const Site& site) {
  const KerasLayer layer = SimpleRnnLayerOf(site);
  layer.CheckArity();
  layer.CheckLayer();
  layer.CheckMask();
  layer.builtin_activation();
}

void KerasSimpleRnnRule::rewrite(const Site& site, Build& build) {
  const KerasLayer layer = SimpleRnnLayerOf(site);
  const MaskedSteps steps(site, layer, build);
  const Value weights = build.transpose(build.in(layer.kernel()), {1, 0});
  const Value recurrent = build.transpose(build.in(layer.recurrent()), {1, 0});
  const auto rnn =
      build
          .builtin(
              "UNIDIRECTIONAL_SEQUENCE_RNN",
              {steps.inputs(), weights, recurrent, build.in(layer.bias()), build.in(layer.first_state())}, 2)
          .attr("fused_activation_function", layer.builtin_activation())
          .attr("asymmetric_quantize_inputs", layer.asymmetric())
          .attr("time_major", steps.time_major());
  layer.SetOutputs(build, steps.Outputs(build, rnn[0]));
  build.result(layer.first_final_state(),
               steps.FinalState(build, rnn[0], build.in(layer.first_state()), rnn[1]));
}

}  // namespace fusebox::rnn
