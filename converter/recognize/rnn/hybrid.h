// SPDX-License-Identifier: Apache-2.0
// Layers with 8-bit weights. A hybrid op quantizes each row of x and of h. The weights of the input have one
// scale, the weights of the state another.
#pragma once

#include "converter/recognize/rnn/cell.h"

namespace fusebox::converter::recognize {

// Returns whether a hybrid op computes the cell's products as they are. If not, or if the weights are f32,
// the layer has f32 weights. Constants of `weights` hold them.
bool IsHybrid(const Function& weights, const Cell&);

}  // namespace fusebox::converter::recognize
