// SPDX-License-Identifier: Apache-2.0
// Layers of custom classes: finds the importer of a class, and applies it to a layer's configuration.
#pragma once

#include <memory>
#include <string>

#include "converter/import/keras/topology.h"

namespace fusebox::keras {

// Returns the importer of a layer's class, as the file states it: `registered` is "package>Name", `module`
// the author's module; both may be empty. Returns null for a class that the converter knows, or for a bare
// unknown name, which WhyUnknown explains. Error: a custom class without an importer, or with several.
Result<const Importer*> FindImporter(const Importers&, const std::string& class_name,
                                     const std::string& registered, const std::string& module);

// Error: a configuration that the importer does not accept.
Result<std::shared_ptr<const CustomLayer>> DescribeCustom(const Importer&, const nlohmann::json& config);

// The entry of a layer that a custom one holds, as a file would store it.
nlohmann::json EntryOf(const nlohmann::json& held);

// Returns advice for a class without an importer.
std::string ImporterAdvice(const std::string& class_name);

}  // namespace fusebox::keras
