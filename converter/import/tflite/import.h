// SPDX-License-Identifier: Apache-2.0
// Import: a .tflite file as a graph for the passes.
//
// Flex nodes (custom ops "Flex" + TensorFlow op, whose options are a FlexBuffer vector [op, NodeDef]) become
// OPAQUE nodes with the attributes of their NodeDef, as in a SavedModel import. Everything else is preserved.
#pragma once

#include <string>
#include <vector>

#include "converter/import/imported.h"
#include "host/plugin/registry.h"

namespace fusebox::tflite_import {

using converter::Imported;

// Imports the named signatures, or all, of the bytes of a file. `name` stands in messages. A file without
// signatures has one named "main".
Result<Imported> Import(Buffer file, const std::string& name, const std::vector<std::string>& signatures,
                        Registry&);

// Converts Flex nodes to OPAQUE nodes; adds a note with their counts. A node with damaged options keeps its
// name and has the cause in its attribute "reason".
void LiftFlex(Module&, std::vector<std::string>& notes);

// Replaces declared shapes of computed values by inferred shapes; keeps the declared rank if nothing is
// inferred.
void CheckHints(Module&, Registry&);

}  // namespace fusebox::tflite_import
