// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rules/keras_lstm.h"

#include <string>
#include <vector>

#include "plugins/rnn/cell/activation.h"
#include "plugins/rnn/rules/builtin_activation.h"
#include "plugins/rnn/rules/keras_layer.h"
#include "plugins/rnn/rules/keras_mask.h"
#include "plugins/rnn/rules/lstm_operands.h"

namespace fusebox::rnn {
namespace {

KerasLayer LayerOf(const Site& site) {
  return {site, 2, 4, {.diagonal = site.name().starts_with("indy_lstm_")}};
}

// Of the op that can say any activation.
void CheckOtherActivations(const Site& site, const KerasLayer& layer) {
  layer.CheckActivations();
  site.require(site.options().s("lstm", "custom") == "custom", "OPTION",
               "asks for builtin ops only, which cannot say this layer's activations: the loop stays",
               "option lstm");
  const bool keeps_cell = layer.masked() && site.out(layer.first_final_state() + 1).uses() > 0;
  site.require(!keeps_cell || ReachesBounds(*CellActivationOf(layer.recurrent_activation())), "ATTR",
               "is " + std::string(layer.recurrent_activation()) +
                   ", which no sum opens or shuts, and the final c of a masked layer is read",
               "attr recurrent_activation");
}

Build::NodeRef EmitLstm(Build& build, const KerasLayer& layer, std::vector<Value>& operands,
                        bool time_major) {
  if (!HasBuiltinActivations(layer)) {
    return build.custom("fusebox.lstm", operands, 3)
        .attr("time_major", time_major)
        .attr("activation", layer.activation())
        .attr("recurrent_activation", layer.recurrent_activation());
  }
  operands.resize(24, none);  // no layer normalization: 20 to 23
  // Keras never clips the cell.
  auto lstm = build.builtin("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, 3)
                  .attr("fused_activation_function", BuiltinActivation(layer.activation()))
                  .attr("cell_clip", 0.0)
                  .attr("proj_clip", 0.0)
                  .attr("time_major", time_major);
  if (layer.diagonal()) lstm.attr("diagonal_recurrent_tensors", true);
  return lstm;
}

}  // namespace

void KerasLstmRule::match(const Site& site) {
  const KerasLayer layer = LayerOf(site);
  layer.CheckArity();
  layer.CheckOperands();
  CheckLstmLayer(layer);
  layer.CheckMask();
  if (!HasBuiltinActivations(layer)) CheckOtherActivations(site, layer);
}

void KerasLstmRule::rewrite(const Site& site, Build& build) {
  const KerasLayer layer = LayerOf(site);
  const uint32_t final_cell = layer.first_final_state() + 1;
  const CountedSteps steps(site, layer, build, site.out(final_cell).uses() > 0);
  std::vector<Value> operands(20, none);
  operands[0] = steps.inputs();
  PutLstmWeights(layer, build, operands.data() + 1);
  steps.PutWeights(build, operands.data() + 1);
  operands[18] = build.in(layer.first_state());
  operands[19] = build.in(layer.first_state() + 1);
  const auto lstm = EmitLstm(build, layer, operands, steps.time_major());
  layer.SetOutputs(build, steps.Outputs(build, lstm[0]), HasBuiltinActivations(layer) ? none : lstm[1]);
  build.result(layer.first_final_state(), steps.FinalState(build, lstm[0], operands[18], lstm[1]));
  build.result(final_cell, lstm[2]);
}

}  // namespace fusebox::rnn
