// SPDX-License-Identifier: Apache-2.0
// Import: a finished .tflite file as a graph that the passes take.
//
// Flex nodes (custom ops named "Flex" and a TensorFlow op, whose options are a FlexBuffer vector [op,
// NodeDef]) become OPAQUE nodes with the attributes of their NodeDef, as if they came from a SavedModel. All
// else stays as the file has it.
#pragma once

#include <string>
#include <vector>

#include "converter/import/imported.h"
#include "host/plugin/plugin.h"

namespace fusebox::tflite_import {

using converter::Imported;

// The named signatures, or, when none is named, all. A file without signatures has one named "main".
Result<Imported> Import(const std::string& file, const std::vector<std::string>& signatures, Registry&);

// The Flex nodes of a module as OPAQUE ones; `notes` says how many of what. One whose options are damaged
// keeps its name, and has the reason as its attribute "why".
void LiftFlex(Module&, std::vector<std::string>& notes);

// Declared shapes of what ops compute give way to what the ops say of them; where ops say nothing, the rank
// is kept.
void CheckHints(Module&, Registry&);

}  // namespace fusebox::tflite_import
