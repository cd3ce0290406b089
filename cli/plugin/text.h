// SPDX-License-Identifier: Apache-2.0
// Text and JSON for a plugin: manifest, policy state, and library if loaded.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "host/plugin/registry.h"

namespace fusebox::cli {

// "CUSTOM:my_op", "UNIDIRECTIONAL_SEQUENCE_LSTM".
std::string OpName(const ManifestOp& op);

// "linux-x86_64" if the plugin has a library for this machine, "only linux-aarch64" if not, "-" without code.
std::string PlatformText(const PluginInfo& info);
// "sealed", "altered", "unsealed", "-"; or why it is unknown.
std::string SealText(const PluginInfo& info);

std::string PluginText(const PluginInfo& info);

// {"id", "version", "state", "reason", "manifest", "library", "loaded", "built_in"}
nlohmann::ordered_json PluginRowJson(const PluginInfo& info);
// Same, plus {"namespace", "description", "license", "abi": {"major", "min_minor"}, "priority",
// "requires": {"cpu", "extensions"}, "provides": {"rules": [{"id", "implements", "min_version",
// "max_version", "when", "emits"}], "ops": [{"op", "version", "options_schema"}], "delegates": [{"name",
// "default", "options_schema"}], "extensions"}, "options_schema"}
nlohmann::ordered_json PluginJson(const PluginInfo& info);

}  // namespace fusebox::cli
