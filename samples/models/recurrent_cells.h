// SPDX-License-Identifier: Apache-2.0
// Functions of Keras GRU and SimpleRNN layers, with their loops.
#pragma once

#include <string>

#include "samples/models/models.h"
#include "samples/models/recurrent_function.h"

namespace fusebox::samples {

inline bool IsGru(RecurrentOptions::Cell cell) {
  return cell == RecurrentOptions::Cell::kGru || cell == RecurrentOptions::Cell::kGruResetBefore;
}
inline int GatesOf(RecurrentOptions::Cell cell) {
  return cell == RecurrentOptions::Cell::kLstm ? 4 : IsGru(cell) ? 3 : 1;
}

// Arguments: inputs, init_h, kernel, recurrent_kernel, bias. Results: last output, outputs, h, and for a GRU
// the runtime.
FunctionBuilder& AddGruFunction(SavedModelBuilder& model, const RecurrentOptions& options,
                                const LayerShape& shape, const std::string& uuid);
FunctionBuilder& AddSimpleRnnFunction(SavedModelBuilder& model, const RecurrentOptions& options,
                                      const LayerShape& shape);

}  // namespace fusebox::samples
