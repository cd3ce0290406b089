// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect.h"

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/plugin_flags.h"
#include "cli/print.h"
#include "host/fusion/fusion.h"
#include "host/tflite/tflite.h"

namespace fusebox::cli {
namespace {

constexpr const char* kInspectFooter =
    R"(Nothing is run. Whether a signature can run depends on the plugins that are found; kernels are chosen as in `run`.

Examples:
  fusebox inspect model.tflite
  fusebox inspect model.tflite --plugin my_op.so
  fusebox inspect model.tflite --json | jq '.ops'
  fusebox inspect model.tflite --json | jq '[.subgraphs[].nodes[].op]')";

struct InspectFlags {
  std::string model;
  PluginFlags plugins;
  bool json = false;
};

// The runnable entries. An error before they are checked individually applies to all.
Result<std::vector<Model::Entry>> EntriesOf(const InspectFlags& flags, const Module& module) {
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  auto entries = Model::Survey(flags.model, {.registry = std::move(registry)});
  if (entries) return entries;
  std::vector<Model::Entry> all;
  for (const Signature& s : module.signatures)
    all.push_back({s.key, s.function, std::unexpected(entries.error())});
  if (all.empty() && !module.functions.empty())
    all.push_back({"", module.functions[0]->name, std::unexpected(entries.error())});
  return all;
}

Result<Exit> Inspect(const InspectFlags& flags) {
  FUSEBOX_ASSIGN(const auto module, tflite::ReadFile(flags.model));
  FUSEBOX_TRY(AttachFused(*module).At(flags.model));
  FUSEBOX_ASSIGN(const auto entries, EntriesOf(flags, *module));
  if (flags.json) PrintDocument(InspectJson(*module, entries));
  else Print(InspectText(*module, entries));
  return Exit::kDone;
}

}  // namespace

void AddInspect(CLI::App& root, Action& action) {
  CLI::App* app = root.add_subcommand(
      "inspect",
      "Show the contents of a .tflite file: signatures and whether they can run, subgraphs, nodes, metadata");
  auto flags = std::make_shared<InspectFlags>();
  app->add_option("model", flags->model, "The .tflite file")->type_name("MODEL")->required();
  AddPluginFlags(*app, flags->plugins);
  app->add_flag("--json", flags->json, kJsonHelp);
  app->footer(kInspectFooter);
  app->callback([flags, &action] { action = [flags] { return Inspect(*flags); }; });
}

}  // namespace fusebox::cli
