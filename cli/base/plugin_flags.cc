// SPDX-License-Identifier: Apache-2.0
#include "cli/base/plugin_flags.h"

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/base/checks.h"
#include "host/base/trace.h"

namespace fusebox::cli {

void AddPluginFlags(CLI::App& app, PluginFlags& flags) {
  app.add_option("--plugin", flags.plugins,
                 "Manifest, library or folder of a plugin, or a folder of plugins (repeatable)")
      ->type_name("PATH")
      ->allow_extra_args(false);
  app.add_option("--config", flags.config,
                 "Configuration file: search path, allow and deny lists, plugin options")
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
  const TraceSpan span("find plugins");
  FUSEBOX_ASSIGN(const Config config, ReadConfig(flags));
  FUSEBOX_ASSIGN(std::shared_ptr<Registry> registry, Registry::Create(config));
  FUSEBOX_TRY(registry->LoadNamed());
  return registry;
}

std::string SearchedText(const Registry& registry) {
  std::string text;
  for (const std::string& folder : registry.searched()) text += "\n  " + folder;
  return text.empty() ? "; no directory was searched for plugins" : "; searched:" + text;
}

void AddDelegateFlags(CLI::App& app, DelegateFlags& flags) {
  app.add_option("--delegate", flags.delegates,
                 "Delegate, with options: NAME or NAME:{JSON} (repeatable; the first has priority); none: "
                 "use kernels "
                 "only. Default: those of the configuration, else the default delegates")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option(
         "--weight-cache", flags.weight_cache,
         "Store packed weights of xnnpack and of other plugins' kernels in this file or directory (models "
         "may share a directory); auto: the user's cache directory")
      ->type_name("PATH")
      ->check(CheckNotEmpty);
  app.add_option(
         "--import", flags.import_ops,
         "Translate a file with ops of TensorFlow (Flex) when it is opened, as `fusebox convert` does: "
         "where nothing of it runs otherwise (auto), or never")
      ->transform(CLI::CheckedTransformer(std::map<std::string, ImportOps>{{"auto", ImportOps::kAuto},
                                                                           {"never", ImportOps::kNever}})
                      .description("{auto,never}"))
      ->type_name("WHEN")
      ->default_str("auto");
}

Result<ModelOptions> ModelOptionsOf(std::shared_ptr<Registry> registry, const DelegateFlags& flags) {
  ModelOptions options{.registry = std::move(registry), .import_ops = flags.import_ops};
  if (!flags.weight_cache.empty())
    options.delegate_options =
        nlohmann::json{{"xnnpack", {{"weight_cache_path", flags.weight_cache}}}}.dump();
  if (flags.delegates.empty()) return options;
  auto& delegates = options.delegates.emplace();
  for (const std::string& text : flags.delegates) {
    if (text == "none") {
      if (flags.delegates.size() > 1) return Invalid("--delegate none excludes other delegates");
      break;
    }
    FUSEBOX_ASSIGN(Config::Delegate delegate, ParseDelegate(text).At("--delegate"));
    delegates.push_back(std::move(delegate));
  }
  return options;
}

}  // namespace fusebox::cli
