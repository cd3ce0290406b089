// SPDX-License-Identifier: Apache-2.0
// Import: a Keras file as a graph with one signature, serving_default. Its inputs and outputs have the names
// of their layers.
//
// archive reads the file, topology parses its configuration, weights maps datasets to layers, and layers/
// builds each layer from TensorFlow ops, which import/tables translates. Recurrent layers become composites:
// see layers/recurrent.cc.
#pragma once

#include <string>
#include <vector>

#include "converter/import/imported.h"
#include "host/plugin/registry.h"

namespace fusebox::keras {

using converter::Imported;

// Errors name the file and the layer's path. `signatures` may only contain serving_default.
Result<Imported> Import(const std::string& path, const std::vector<std::string>& signatures,
                        Registry& registry);

}  // namespace fusebox::keras
