// SPDX-License-Identifier: Apache-2.0
#include "cli/inspect/inspect.h"

#include <CLI/CLI.hpp>

#include "cli/base/checks.h"
#include "cli/base/command.h"
#include "cli/base/plugin_flags.h"
#include "cli/base/print.h"

namespace fusebox::cli {
namespace {

constexpr const char* kInspectFooter =
    R"(Nothing is run. Whether a signature can run depends on the plugins that are found; kernels are chosen as in `run`.

Examples:
  fusebox inspect model.tflite
  fusebox inspect model.tflite --plugin my_op.so
  fusebox inspect model.tflite --html model.html
  fusebox bench model.tflite --profile --json > times.json && fusebox inspect model.tflite --html m.html --profile times.json
  fusebox inspect model.tflite --json | jq '.ops'
  fusebox inspect model.tflite --json | jq '[.subgraphs[].nodes[].op]')";

struct InspectFlags {
  std::string model;
  PluginFlags plugins;
  DelegateFlags delegates;
  FileFlags files;
  bool json = false;
};

// The runnable entries. An error before they are checked individually applies to all.
std::vector<Model::Entry> EntriesOf(const Module& module, const ModelOptions& options) {
  auto entries = Model::Survey(Clone(module), options);
  if (entries) return *std::move(entries);
  std::vector<Model::Entry> all;
  for (const Signature& s : module.signatures)
    all.push_back({s.key, s.function, std::unexpected(entries.error())});
  if (all.empty() && !module.functions.empty())
    all.push_back({"", module.functions[0]->name, std::unexpected(entries.error())});
  return all;
}

// The module that `run` would open. A file that cannot be imported is shown as it is.
Result<Source> SourceOf(const std::string& path, ModelOptions options) {
  auto source = ReadSource(path, options);
  if (source) {
    PrintNotices(path, source->notices);
    return source;
  }
  if (options.import_ops == ImportOps::kNever) return source;
  const std::string why = source.error().message;
  options.import_ops = ImportOps::kNever;
  FUSEBOX_ASSIGN(source, ReadSource(path, options));
  Message(why);
  return source;
}

Result<Exit> Inspect(const InspectFlags& flags) {
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(ModelOptions options, ModelOptionsOf(std::move(registry), flags.delegates));
  options.keep_bodies = true;
  FUSEBOX_ASSIGN(const Source source, SourceOf(flags.model, options));
  const Module* const module = source.module.get();
  const std::vector<Model::Entry> entries = EntriesOf(*module, options);
  FileFlags files = flags.files;
  files.silent = flags.json;
  FUSEBOX_TRY(WriteFiles(*module, entries, options, files));
  const bool wrote =
      !flags.files.html.empty() || !flags.files.dot.empty() || !flags.files.model_explorer.empty();
  if (flags.json) PrintDocument(InspectJson(*module, entries));
  else if (!wrote) Print(InspectText(*module, entries));
  return Exit::kDone;
}

void AddFileFlags(CLI::App& app, FileFlags& flags) {
  const auto add = [&](const char* name, std::string& path, const char* help) {
    return app.add_option(name, path, help)->type_name("FILE")->check(CheckNotEmpty);
  };
  CLI::Option* html =
      add("--html", flags.html,
          "Write a page with the graph, what runs each node, constants and memory, instead of text");
  add("--dot", flags.dot, "Write the graph for Graphviz");
  add("--model-explorer", flags.model_explorer,
      "Write node data for Model Explorer: times with --profile, else what runs each node");
  add("--profile", flags.profile,
      "Times for the page and for Model Explorer, from `fusebox bench MODEL --profile --json`");
  add("--report", flags.report, "What the conversion did, for the page, from `fusebox convert --report`")
      ->needs(html);
}

}  // namespace

void AddInspect(CLI::App& root, Action& action) {
  CLI::App* app = root.add_subcommand(
      "inspect",
      "Show the contents of a .tflite file: signatures and whether they can run, subgraphs, nodes, metadata");
  auto flags = std::make_shared<InspectFlags>();
  app->add_option("model", flags->model, "The .tflite file")->type_name("MODEL")->required();
  AddPluginFlags(*app, flags->plugins);
  AddDelegateFlags(*app, flags->delegates);
  AddFileFlags(*app, flags->files);
  app->add_flag("--json", flags->json, kJsonHelp);
  app->footer(kInspectFooter);
  app->callback([flags, &action] { action = [flags] { return Inspect(*flags); }; });
}

}  // namespace fusebox::cli
