// SPDX-License-Identifier: Apache-2.0
// The function of a Keras LSTM layer, tagged with api_implements, with its loop.
#pragma once

#include <string>

#include "models/saved_model/saved_model_builder.h"
#include "samples/models/masked.h"

namespace fusebox::samples {

using namespace models;

// Six arguments: inputs, init_h, init_c, kernel [n,4u], recurrent_kernel [u,4u], bias [4u], gates in the
// order i, f, c, o. Five results: last output, outputs, h, c, runtime.
FunctionBuilder& AddLstmFunction(SavedModelBuilder& model, const LstmOptions& options,
                                 const std::string& uuid, Masks masks = Masks::kNone);

}  // namespace fusebox::samples
