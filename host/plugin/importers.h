// SPDX-License-Identifier: Apache-2.0
// Importers of manifests: custom classes of Keras layers, described by ops.
#pragma once

#include <string>
#include <vector>

#include "host/plugin/steps.h"

namespace fusebox {

// An entry of provides.importers.
struct Importer {
  std::string plugin, plugin_version;
  std::vector<std::string> classes;
  nlohmann::json entry;  // as in the manifest, checked
};

// The importers of a manifest, in its order. They are read from its text, since only conversions need them.
std::vector<Importer> ImportersOf(const Manifest& manifest);

// Returns whether a value of an entry is {"from": KEY, ...}, which stands for a value of a layer's
// configuration.
bool IsFrom(const nlohmann::json& value);

// Checks what the JSON Schema of manifests does not check: names, conditions, types. `list` is at
// /provides/importers.
Status CheckImporters(const Document& document, const nlohmann::json& list);

}  // namespace fusebox
