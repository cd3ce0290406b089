// SPDX-License-Identifier: Apache-2.0
// --plugin, --config, --delegate and --weight-cache: which plugins a command may use, and which delegates a
// model gets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/model.h"
#include "host/plugin/plugin.h"

namespace CLI {
class App;
}

namespace fusebox::cli {

struct PluginFlags {
  std::vector<std::string> plugins;
  std::string config;
};
void AddPluginFlags(CLI::App& app, PluginFlags& flags);

// The configuration file, if there is one, and the flags on top.
Result<Config> ReadConfig(const PluginFlags& flags);
// A plugin that --plugin names must open: one that does not is an error with the system's reason.
Result<std::shared_ptr<Registry>> OpenRegistry(const PluginFlags& flags);

struct DelegateFlags {
  std::vector<std::string> delegates;  // "none", "NAME" or "NAME:{JSON options}"; empty: the default ones
  std::string weight_cache;            // of xnnpack; empty: what its options say
};
void AddDelegateFlags(CLI::App& app, DelegateFlags& flags);
// Where plugins were looked for, at the end of a message: "; searched:" and a line for each place.
std::string SearchedText(const Registry& registry);

Result<ModelOptions> ModelOptionsOf(std::shared_ptr<Registry> registry, const DelegateFlags& flags);

}  // namespace fusebox::cli
