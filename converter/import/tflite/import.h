// SPDX-License-Identifier: Apache-2.0
// Import: a finished .tflite file as a graph that the passes take.
//
// Flex nodes (custom ops named "Flex" and a TensorFlow op, whose options are a FlexBuffer vector [op, NodeDef]) become OPAQUE nodes
// with the attributes of their NodeDef, as if they came from a SavedModel. All else stays as the file has it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::tflite_import {

struct Imported {
  std::unique_ptr<Module> module;
  std::vector<std::pair<std::string, std::string>>
      refused;  // signature, why: always empty, a file is one piece
  std::vector<std::string> notes;
  bool unsigned_file = false;  // it had no signatures: one stands for its main subgraph
};

// The named signatures, or, when none is named, all. A file without signatures has one named "main".
Result<Imported> Import(const std::string& file, const std::vector<std::string>& signatures);

// The Flex nodes of a module as OPAQUE ones; `notes` says how many of what. Errors name the node whose options are damaged.
Status LiftFlex(Module&, std::vector<std::string>& notes);

}  // namespace fusebox::tflite_import
