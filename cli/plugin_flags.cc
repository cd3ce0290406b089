// SPDX-License-Identifier: Apache-2.0
#include "cli/plugin_flags.h"

namespace fusebox::cli {

void AddPluginFlags(CLI::App& app, PluginFlags& flags) {
  app.add_option("--plugin", flags.plugins,
                 "A plugin's manifest, library or folder, or a folder of plugins (repeatable)")
      ->type_name("PATH")
      ->allow_extra_args(false);
  app.add_option("--config", flags.config,
                 "Configuration: search path, allow and deny lists, plugins' options")
      ->type_name("FILE");
}

Result<Config> ReadConfig(const PluginFlags& flags) {
  Config config;
  if (!flags.config.empty()) {
    FUSEBOX_ASSIGN(config, fusebox::ReadConfig(flags.config));
  }
  config.plugins.insert(config.plugins.begin(), flags.plugins.begin(), flags.plugins.end());
  return config;
}

Result<std::shared_ptr<Registry>> OpenRegistry(const PluginFlags& flags) {
  FUSEBOX_ASSIGN(const Config config, ReadConfig(flags));
  FUSEBOX_ASSIGN(std::shared_ptr<Registry> registry, Registry::Create(config));
  FUSEBOX_TRY(registry->LoadNamed());
  return registry;
}

}  // namespace fusebox::cli
