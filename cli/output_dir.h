// SPDX-License-Identifier: Apache-2.0
// The folder that `run --output-dir` leaves: in<i>.npy, run<r>.out<i>.npy, and io.json
// {"inputs": [{"name", "dtype", "shape"}], "outputs": [...]} with the tensors' names and TFLite's numbers of
// element types. Two tools that write such folders can be compared file by file.
#pragma once

#include <string>
#include <vector>

#include "cli/inputs.h"

namespace fusebox::cli {

// runs[r][i]: output i of run r. Makes the folder where there is none; each file is written whole or not at
// all.
Status WriteOutputDir(const std::string& dir, const Ports& ports, const std::vector<Tensor>& inputs,
                      const std::vector<std::vector<Tensor>>& runs);

// The number of an element type in TFLite's C API (TfLiteType: f32 is 1); 0: it has none.
int TfLiteTypeOf(DType type);

}  // namespace fusebox::cli
