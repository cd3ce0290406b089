// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/base/print.h"
#include "cli/plugin/commands.h"
#include "host/plugin/manifest.h"

namespace fusebox::cli {

void AddPluginIndex(CLI::App& plugin, Action& action) {
  CLI::App* app = plugin.add_subcommand(
      "index", "Write fusebox-plugins.index into a folder of plugins; programs then start faster");
  auto folder = std::make_shared<std::string>();
  app->add_option("folder", *folder, "Folder of plugin folders")->type_name("DIR")->required();
  app->callback([folder, &action] {
    action = [folder]() -> Result<Exit> {
      FUSEBOX_ASSIGN(const IndexWritten written, WriteIndex(*folder).At(*folder));
      for (const std::string& why : written.left_out) Message("left out: " + Printable(why));
      Message(fmt::format("{}: {} plugin{}", Printable(written.path), written.plugins,
                          written.plugins == 1 ? "" : "s"));
      return Exit::kDone;
    };
  });
}

}  // namespace fusebox::cli
