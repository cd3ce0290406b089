// SPDX-License-Identifier: Apache-2.0
// Layers with 8-bit weights: their products quantize each row of x and of h, as hybrid ops do.
#pragma once

#include "converter/recognize/rnn/cell.h"

namespace fusebox::converter::recognize {

// Requires that all weights of the cell are f32, or that all are i8 with one scale for the input and one for
// the state, and quantize alike. Constants of `weights` hold them.
Status CheckWeightTypes(const Function& weights, const Cell&);
// True if products of the cell quantize x and h with a zero point.
bool QuantizesAsymmetrically(const Cell&);

}  // namespace fusebox::converter::recognize
