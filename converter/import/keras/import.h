// SPDX-License-Identifier: Apache-2.0
// Import: a Keras file as a graph of one signature, serving_default, whose inputs and outputs bear the names of their layers.
//
// archive reads the file, topology its configuration, weights says which dataset belongs where, and layers/ write each layer in
// TensorFlow's ops, which import/tables translates. Recurrent layers become composites: see layers/recurrent.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/graph/graph.h"
#include "host/plugin/plugin.h"

namespace fusebox::keras {

struct Imported {
  std::unique_ptr<Module> module;
  std::vector<std::string> notes;
};

// Errors name the file and the layer by its path.
Result<Imported> Import(const std::string& path, Registry& registry);

}  // namespace fusebox::keras
