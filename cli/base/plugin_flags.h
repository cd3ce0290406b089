// SPDX-License-Identifier: Apache-2.0
// Options --plugin, --config, --delegate, --weight-cache and --import: plugins of a command; delegates and
// the import of a model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/model.h"
#include "host/plugin/registry.h"

namespace CLI {
class App;
}

namespace fusebox::cli {

struct PluginFlags {
  std::vector<std::string> plugins;
  std::string config;
};
void AddPluginFlags(CLI::App& app, PluginFlags& flags);

// The configuration file, if any, plus the flags.
Result<Config> ReadConfig(const PluginFlags& flags);
// A plugin named by --plugin must load; otherwise an error with the reason.
Result<std::shared_ptr<Registry>> OpenRegistry(const PluginFlags& flags);

struct DelegateFlags {
  std::vector<std::string> delegates;  // "none", "NAME" or "NAME:{JSON options}"; empty: default delegates
  std::string weight_cache;            // of xnnpack; empty: from its options
  ImportOps import_ops = ImportOps::kAuto;
};
void AddDelegateFlags(CLI::App& app, DelegateFlags& flags);
// The searched directories, for the end of a message: "; searched:" and one line each.
std::string SearchedText(const Registry& registry);

Result<ModelOptions> ModelOptionsOf(std::shared_ptr<Registry> registry, const DelegateFlags& flags);

}  // namespace fusebox::cli
