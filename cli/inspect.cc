// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect.h"

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/print.h"
#include "host/fusion/fusion.h"
#include "host/tflite/tflite.h"

namespace fusebox::cli {
namespace {

constexpr const char* kInspectFooter = R"(Nothing is run and no plugin is looked for.

Examples:
  fusebox inspect model.tflite
  fusebox inspect model.tflite --json | jq '.ops'
  fusebox inspect model.tflite --json | jq '[.subgraphs[].nodes[].op]')";

struct InspectFlags {
  std::string model;
  bool json = false;
};

Result<Exit> Inspect(const InspectFlags& flags) {
  FUSEBOX_ASSIGN(const auto module, tflite::ReadFile(flags.model));
  FUSEBOX_TRY(AttachFused(*module).At(flags.model));
  if (flags.json) PrintDocument(InspectJson(*module));
  else Print(InspectText(*module));
  return Exit::kDone;
}

}  // namespace

void AddInspect(CLI::App& root, Action& action) {
  CLI::App* app =
      root.add_subcommand("inspect", "Say what a .tflite file holds: signatures, subgraphs, nodes, metadata");
  auto flags = std::make_shared<InspectFlags>();
  app->add_option("model", flags->model, "The .tflite file")->type_name("MODEL")->required();
  app->add_flag("--json", flags->json, kJsonHelp);
  app->footer(kInspectFooter);
  app->callback([flags, &action] { action = [flags] { return Inspect(*flags); }; });
}

}  // namespace fusebox::cli
