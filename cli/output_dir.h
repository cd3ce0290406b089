// SPDX-License-Identifier: Apache-2.0
// The folder of `run --output-dir`: in<i>.npy, run<r>.out<i>.npy, and io.json
// {"inputs": [{"name", "dtype", "shape"}], "outputs": [...]} with tensor names and TfLiteType values. Folders
// of different tools can be compared file by file.
#pragma once

#include <string>
#include <vector>

#include "cli/base/inputs.h"

namespace fusebox::cli {

// runs[r][i]: output i of run r. Creates the folder if needed; each file is written atomically.
Status WriteOutputDir(const std::string& dir, const Ports& ports, const std::vector<Tensor>& inputs,
                      const std::vector<std::vector<Tensor>>& runs);

// Returns the TfLiteType value of an element type (f32 is 1), or 0 if there is none.
int TfLiteTypeOf(DType type);

}  // namespace fusebox::cli
