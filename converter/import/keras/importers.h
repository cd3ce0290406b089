// SPDX-License-Identifier: Apache-2.0
// Importers of the plugins of a registry: finds the importer of a class, and computes the values of its
// entry.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/plugin/importers.h"
#include "host/plugin/registry.h"

namespace fusebox::keras {

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

}  // namespace fusebox::keras
