// SPDX-License-Identifier: Apache-2.0
// What the rules of one and of two LSTM layers share: the layer's preconditions, and its weights as operands
// of the op.
#pragma once

#include <fusebox/rule.hpp>

#include "plugins/rnn/rules/keras_layer.h"

namespace fusebox::rnn {

// After CheckOperands: bias, sizes, states and sequence. Throws Reject.
void CheckLstmLayer(const KerasLayer& layer);

// Can TFLite's ops say the layer's activations?
bool HasBuiltinActivations(const KerasLayer& layer);
// Throws Reject where they cannot.
void CheckBuiltinActivations(const Site& site, const KerasLayer& layer);

// Input weights, recurrent weights and biases in the order of the op's operands 1 to 17. No peephole (9 to
// 11), no projection (16, 17).
void PutLstmWeights(const KerasLayer& layer, Build& build, Value* operands);

}  // namespace fusebox::rnn
