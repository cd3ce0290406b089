// SPDX-License-Identifier: Apache-2.0
// Importers of manifests: custom classes of Keras layers, described by ops.
#pragma once

#include <memory>
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

// Checks what the JSON Schema of manifests does not check: names, conditions, types. `list` is at
// /provides/importers.
Status CheckImporters(const Document& document, const nlohmann::json& list);

// The importers of a registry's plugins.
class Importers {
 public:
  explicit Importers(const Registry& registry);
  // Returns the importer of one of these names of a class, the first name first, or null if there is none.
  // Error: two plugins have one and `prefer` names neither of them.
  Result<const Importer*> Find(const std::vector<std::string>& names) const;
  // Plugins with an importer that are not usable, for messages: "com.acme.layers (denied: ...)".
  std::vector<std::string> Unusable(const std::vector<std::string>& names) const;

 private:
  struct Listed {
    Importer importer;
    std::string manifest;  // path
    std::string why_not;   // empty: usable
  };
  std::vector<Listed> listed_;
  std::map<std::string, std::vector<std::string>> prefer_;
};

// `value` with {"from": KEY} replaced by values of the configuration. Error: a key that is not there, or a
// product or quotient that is no integer.
Result<nlohmann::json> WithConfig(const nlohmann::json& value, const nlohmann::json& config);
// Returns whether the entry exists for this configuration: its member "when" holds, or it has none.
bool Exists(const nlohmann::json& entry, const nlohmann::json& config);

}  // namespace fusebox
