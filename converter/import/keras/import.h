// SPDX-License-Identifier: Apache-2.0
// Import: a Keras file as a graph of one signature, serving_default, whose inputs and outputs bear the names
// of their layers.
//
// archive reads the file, topology its configuration, weights says which dataset belongs where, and layers/
// write each layer in TensorFlow's ops, which import/tables translates. Recurrent layers become composites:
// see layers/recurrent.cc.
#pragma once

#include <string>
#include <vector>

#include "converter/import/imported.h"
#include "host/plugin/plugin.h"

namespace fusebox::keras {

using converter::Imported;

// Errors name the file and the layer by its path. `signatures` may name serving_default only.
Result<Imported> Import(const std::string& path, const std::vector<std::string>& signatures,
                        Registry& registry);

}  // namespace fusebox::keras
