// SPDX-License-Identifier: Apache-2.0
#include "host/plugin/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <filesystem>
#include <set>

#include "cli/base/command.h"
#include "cli/base/plugin_flags.h"
#include "cli/base/print.h"
#include "cli/plugin/check.h"
#include "cli/plugin/commands.h"
#include "cli/plugin/seal.h"
#include "cli/plugin/text.h"
#include "host/base/json.h"
#include "host/base/table.h"
#include "host/plugin/importers.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PluginCommandFlags {
  std::string subject;  // a plugin id, a path, or the name of an op or composite
  PluginFlags plugins;
  bool load = false;
  bool json = false;
};

Json RowsJson(const std::vector<PluginInfo>& infos) {
  Json rows = Json::array();
  for (const PluginInfo& info : infos) rows.push_back(PluginRowJson(info));
  return rows;
}

std::string SearchedText(const Registry& registry) {
  std::string out = "searched:\n";
  for (const std::string& folder : registry.searched()) out += "  " + Printable(folder) + "\n";
  return out;
}

Result<Exit> List(const PluginCommandFlags& flags) {
  FUSEBOX_ASSIGN(const Config config, ReadConfig(flags.plugins));
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config));
  if (flags.load) FUSEBOX_TRY(registry->LoadAll());
  const std::vector<PluginInfo> infos = registry->plugins();
  if (flags.json) {
    PrintDocument(Json{{"plugins", RowsJson(infos)}, {"searched", registry->searched()}});
    return Exit::kDone;
  }
  Table table({"plugin", "version", "state", "loaded", "platform", "seal", "manifest", "reason"});
  for (const PluginInfo& info : infos)
    table.Row({info.manifest.id.empty() ? "?" : info.manifest.id, info.manifest.version,
               std::string(Name(info.state)), info.loaded ? "yes" : "no", PlatformText(info), SealText(info),
               info.manifest.path, info.why});
  Print(table.Text() + SearchedText(*registry));
  return Exit::kDone;
}

// The plugins with that id; several if one shadows others.
std::vector<PluginInfo> WithId(const Registry& registry, const std::string& id) {
  std::vector<PluginInfo> found;
  for (PluginInfo& info : registry.plugins()) {
    if (info.manifest.id == id) found.push_back(std::move(info));
  }
  return found;
}

bool IsPath(const std::string& subject) {
  std::error_code error;
  return subject.find('/') != std::string::npos || std::filesystem::exists(subject, error);
}

// The same config, with the plugins at that path and no others.
Config Alone(Config config, const std::string& path) {
  config.plugins = {path};
  config.plugin_path.clear();
  config.search_default_path = false;
  return config;
}

// The manifests that a path stands for: of a manifest, a library, a plugin's folder or a folder of these.
Result<std::set<std::string>> ManifestsAt(const Config& config, const std::string& path) {
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(Alone(config, path)));
  std::set<std::string> manifests;
  for (const PluginInfo& info : registry->plugins()) {
    if (!info.built_in) manifests.insert(info.manifest.path);
  }
  return manifests;
}

// "com.acme.x: not found; did you mean ...? searched: ...".
std::string NotFoundText(const Registry& registry, const std::string& id) {
  std::vector<std::string> ids;
  for (const PluginInfo& info : registry.plugins()) ids.push_back(info.manifest.id);
  return "plugin " + id + ": not found" + DidYouMean(id, ids) + "; " + SearchedText(registry);
}

Result<Exit> Inspect(const PluginCommandFlags& flags) {
  const bool path = IsPath(flags.subject);
  FUSEBOX_ASSIGN(Config config, ReadConfig(flags.plugins));
  if (path) config = Alone(std::move(config), flags.subject);
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config));
  if (flags.load) FUSEBOX_TRY(registry->LoadAll());
  std::vector<PluginInfo> infos = path ? registry->plugins() : WithId(*registry, flags.subject);
  if (path) std::erase_if(infos, [](const PluginInfo& info) { return info.built_in; });
  if (infos.empty()) return NotFound(NotFoundText(*registry, flags.subject));
  Json list = Json::array();
  for (size_t i = 0; i < infos.size(); ++i) {
    if (flags.json) list.push_back(PluginJson(infos[i]));
    else Print((i > 0 ? "\n" : "") + PluginText(infos[i]));
  }
  if (flags.json) PrintDocument(Json{{"plugins", std::move(list)}});
  return Exit::kDone;
}

struct Provider {
  std::string what, plugin, state, why;
};

bool Implements(const ManifestRule& rule, std::string_view name) {
  return std::any_of(rule.implements.begin(), rule.implements.end(), [&](const std::string& wanted) {
    return wanted == name ||
           (wanted.ends_with('*') && name.starts_with(std::string_view(wanted).substr(0, wanted.size() - 1)));
  });
}

// Rules, kernels and importers for a name, from the manifests, in order of preference.
std::vector<Provider> Providers(const Registry& registry, const std::string& name) {
  std::vector<Provider> found;
  for (const PluginInfo& info : registry.PluginsFor(name)) {
    const Manifest& m = info.manifest;
    const auto add = [&](const std::string& what) {
      found.push_back({what, m.id + " " + m.version, std::string(Name(info.state)), info.why});
    };
    for (const ManifestRule& rule : m.rules) {
      if (Implements(rule, name)) add("rule " + rule.id);
    }
    for (const ManifestOp& op : m.ops) {
      if (op.name == name || OpName(op) == name) add("kernel " + OpName(op));
    }
    for (const Importer& importer : ImportersOf(m)) {
      if (std::ranges::find(importer.classes, name) != importer.classes.end()) add("importer " + name);
    }
  }
  return found;
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// "; did you mean ...": names of plugins that contain the word, else the closest one. Empty: none.
std::string Suggestion(const Registry& registry, const std::string& word) {
  constexpr size_t kMost = 5;
  std::set<std::string> names;
  std::set<std::string> containing;
  for (const PluginInfo& info : registry.plugins()) {
    for (const ManifestRule& rule : info.manifest.rules)
      names.insert(rule.implements.begin(), rule.implements.end());
    for (const ManifestOp& op : info.manifest.ops) names.insert(OpName(op));
  }
  for (const std::string& name : names) {
    if (containing.size() < kMost && Lower(name).find(Lower(word)) != std::string::npos)
      containing.insert(name);
  }
  if (containing.empty()) return DidYouMean(word, std::vector(names.begin(), names.end()));
  return fmt::format("; did you mean {}?", fmt::join(containing, ", "));
}

Result<Exit> Which(const PluginCommandFlags& flags) {
  FUSEBOX_ASSIGN(const Config config, ReadConfig(flags.plugins));
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config));
  const std::vector<Provider> found = Providers(*registry, flags.subject);
  Json rows = Json::array();
  Table table({"provides", "plugin", "state", "reason"});
  for (const Provider& p : found) {
    rows.push_back({{"provides", p.what}, {"plugin", p.plugin}, {"state", p.state}, {"reason", p.why}});
    table.Row({p.what, p.plugin, p.state, p.why});
  }
  if (flags.json) PrintDocument(Json{{"name", flags.subject}, {"providers", std::move(rows)}});
  else if (!found.empty()) Print(table.Text());
  else
    Print("no plugin has a rule or a kernel for " + Printable(flags.subject) +
          Printable(Suggestion(*registry, flags.subject)) + "\n" + SearchedText(*registry));
  return found.empty() ? Exit::kNo : Exit::kDone;
}

Result<Exit> Why(const PluginCommandFlags& flags) {
  const bool path = IsPath(flags.subject);
  FUSEBOX_ASSIGN(Config config, ReadConfig(flags.plugins));
  std::set<std::string> manifests;
  if (path) {
    FUSEBOX_ASSIGN(manifests, ManifestsAt(config, flags.subject));
    // First, and beside the others: it may require their extensions.
    config.plugins.insert(config.plugins.begin(), flags.subject);
  }
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config));
  FUSEBOX_TRY(registry->LoadAll());
  std::vector<PluginInfo> infos = path ? registry->plugins() : WithId(*registry, flags.subject);
  if (path) std::erase_if(infos, [&](const auto& info) { return !manifests.contains(info.manifest.path); });
  const bool usable = std::any_of(infos.begin(), infos.end(), [](const PluginInfo& info) {
    return info.state == PluginInfo::State::kOk;
  });
  if (flags.json) {
    PrintDocument(Json{{path ? "path" : "id", flags.subject},
                       {"usable", usable},
                       {"plugins", RowsJson(infos)},
                       {"searched", registry->searched()}});
  } else if (infos.empty()) {
    Print(NotFoundText(*registry, flags.subject) + "\n");
  }
  for (size_t i = 0; i < infos.size() && !flags.json; ++i) {
    const std::string good = infos[i].loaded ? "its library opens and matches its manifest"
                                             : "it has no code, and its manifest is valid";
    const std::string why = infos[i].why.empty() ? good : infos[i].why;
    Print(Printable(infos[i].manifest.path + ": " + std::string(Name(infos[i].state)) + ": " + why) + "\n");
  }
  return usable ? Exit::kDone : Exit::kNo;
}

// Adds one subcommand; `subject` names its argument, null: none.
std::shared_ptr<PluginCommandFlags> AddOne(CLI::App& plugin, Action& action, const char* name,
                                           const char* help, const char* subject, const char* subject_help,
                                           Result<Exit> (*perform)(const PluginCommandFlags&)) {
  CLI::App* app = plugin.add_subcommand(name, help);
  auto flags = std::make_shared<PluginCommandFlags>();
  if (subject) app->add_option("subject", flags->subject, subject_help)->type_name(subject)->required();
  AddPluginFlags(*app, flags->plugins);
  app->add_flag("--json", flags->json, kJsonHelp);
  app->callback([flags, perform, &action] { action = [flags, perform] { return perform(*flags); }; });
  return flags;
}

}  // namespace

void AddPlugin(CLI::App& root, Action& action) {
  CLI::App* plugin =
      root.add_subcommand("plugin", "List plugins, their rules and kernels, and why any were skipped");
  plugin->require_subcommand(1);
  plugin->footer(R"(Examples:
  fusebox plugin list --load
  fusebox plugin inspect fusebox.rnn
  fusebox plugin which my_custom_fused_op
  fusebox plugin why com.acme.my_op --config fusebox.json
  fusebox plugin why build/my_op.so
  fusebox plugin check build/my_op.so
  fusebox plugin new my_op --lang c)");
  constexpr const char* kLoadHelp = "Also load the libraries; without this flag, no plugin code runs";
  const auto list =
      AddOne(*plugin, action, "list", "List all plugins that were found, and the folders that were searched",
             nullptr, nullptr, List);
  plugin->get_subcommand("list")->add_flag("--load", list->load, kLoadHelp);
  const auto inspect = AddOne(*plugin, action, "inspect", "Show what one plugin provides and requires",
                              "ID|PATH", "Id, manifest, library or folder of the plugin", Inspect);
  plugin->get_subcommand("inspect")->add_flag("--load", inspect->load, kLoadHelp);
  AddPluginSeal(*plugin, action);
  AddPluginPin(*plugin, action);
  AddOne(*plugin, action, "which",
         "List plugins with a rule, kernel or importer for a name (exit code 1: none)", "NAME",
         "Name of a composite, a custom op, a builtin op or a Keras class", Which);
  AddPluginCheck(*plugin, action);
  AddOne(*plugin, action, "why", "Load a plugin and show whether it can be used; if not, why (exit code 1)",
         "ID|PATH", "Its id, or its manifest, library or folder", Why);
  AddPluginIndex(*plugin, action);
  AddPluginNew(*plugin, action);
}

}  // namespace fusebox::cli
