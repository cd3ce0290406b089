// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/rules.h"

#include <string>
#include <vector>

#include "plugins/common/activation.h"
#include "plugins/rnn/rules/keras_layer.h"
#include "plugins/rnn/rules/keras_mask.h"

namespace fusebox::rnn {
namespace {

using common::Activation;

KerasLayer LstmLayerOf(const Site& site) {
  return {site, 2, 4, {.diagonal = site.name().starts_with("indy_lstm_")}};
}

// True if the activation is 0 for all sums that are small enough and 1 for all that are large enough.
bool ReachesBounds(Activation activation) {
  return activation == Activation::kSigmoid || activation == Activation::kHardSigmoid ||
         activation == Activation::kHardSigmoidOfKeras3;
}

// For fusebox.lstm.
void CheckOtherActivations(const Site& site, const KerasLayer& layer) {
  layer.CheckActivations();
  site.require(
      site.options().s("lstm", "custom") == "custom", "OPTION",
      "allows builtin ops only, which do not support the activations of this layer; the loop remains",
      "option lstm");
  const bool keeps_cell = layer.masked() && site.out(layer.first_final_state() + 1).uses() > 0;
  site.require(!keeps_cell || ReachesBounds(*common::KerasActivation(layer.recurrent_activation())), "ATTR",
               "is " + std::string(layer.recurrent_activation()) +
                   ", which does not reach 0 and 1, as the final c of a masked layer requires",
               "attr recurrent_activation");
}

Build::NodeRef EmitLstm(Build& build, const KerasLayer& layer, std::vector<Value>& operands,
                        bool time_major) {
  if (!layer.HasBuiltinActivations()) {
    auto lstm = build.custom("fusebox.lstm", operands, 3)
                    .attr("time_major", time_major)
                    .attr("activation", layer.activation())
                    .attr("recurrent_activation", layer.recurrent_activation());
    if (layer.asymmetric()) lstm.attr("asymmetric_quantize_inputs", true);
    return lstm;
  }
  operands.resize(24, no_value);  // no layer normalization: 20 to 23
  // Keras never clips the cell.
  auto lstm = build.builtin("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, 3)
                  .attr("fused_activation_function", layer.builtin_activation())
                  .attr("cell_clip", 0.0)
                  .attr("proj_clip", 0.0)
                  .attr("time_major", time_major);
  if (layer.asymmetric()) lstm.attr("asymmetric_quantize_inputs", true);
  if (layer.diagonal()) lstm.attr("diagonal_recurrent_tensors", true);
  return lstm;
}

}  // namespace

void KerasLstmRule::match(const Site& site) {
  const KerasLayer layer = LstmLayerOf(site);
  layer.CheckArity();
  layer.CheckLayer();
  layer.CheckMask();
  if (!layer.HasBuiltinActivations()) CheckOtherActivations(site, layer);
}

void KerasLstmRule::rewrite(const Site& site, Build& build) {
  const KerasLayer layer = LstmLayerOf(site);
  const uint32_t final_cell = layer.first_final_state() + 1;
  const MaskedSteps steps(site, layer, build, site.out(final_cell).uses() > 0);
  std::vector<Value> operands(20, no_value);
  operands[0] = steps.inputs();
  layer.SetLstmWeights(build, operands.data() + 1);
  steps.ExtendWeights(build, operands.data() + 1);
  operands[18] = build.in(layer.first_state());
  operands[19] = build.in(layer.first_state() + 1);
  const auto lstm = EmitLstm(build, layer, operands, steps.time_major());
  layer.SetOutputs(build, steps.Outputs(build, lstm[0]), layer.HasBuiltinActivations() ? no_value : lstm[1]);
  build.result(layer.first_final_state(), steps.FinalState(build, lstm[0], operands[18], lstm[1]));
  build.result(final_cell, lstm[2]);
}

}  // namespace fusebox::rnn
