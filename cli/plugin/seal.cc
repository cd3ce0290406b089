// SPDX-License-Identifier: Apache-2.0
#include "cli/plugin/seal.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <set>

#include "check/elf.h"
#include "cli/base/plugin_flags.h"
#include "cli/base/print.h"
#include "cli/plugin/json_edit.h"
#include "host/base/json.h"
#include "host/base/table.h"
#include "host/plugin/seal.h"
#include "host/plugin/steps.h"

namespace fusebox::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string ManifestAt(const std::string& path) {
  std::error_code error;
  const fs::path folder(path);
  return fs::is_directory(folder, error) ? (folder / "fusebox-plugin.json").string() : path;
}

// Adds the libraries that one needs and finds by $ORIGIN, with their hashes, each after those that it needs.
Status AddBundled(const Manifest& manifest, const fs::path& library, Json& list, std::set<fs::path>& seen) {
  FUSEBOX_ASSIGN(const check::ElfFacts facts, check::ReadElf(library).At(library.string()));
  for (const std::string& needed : facts.needed) {
    for (std::string folder : facts.run_paths) {
      const size_t origin = folder.starts_with("$ORIGIN") ? 7 : folder.starts_with("${ORIGIN}") ? 9 : 0;
      const fs::path found = (library.parent_path().string() + folder.substr(origin)) / fs::path(needed);
      std::error_code error;
      if (origin == 0 || !fs::exists(found, error)) continue;
      if (!seen.insert(fs::canonical(found, error)).second) break;
      FUSEBOX_ASSIGN(const check::ElfFacts own, check::ReadElf(found).At(found.string()));
      const std::string path =
          found.lexically_normal().lexically_relative(fs::absolute(manifest.path).parent_path()).string();
      if (own.soname != needed || path.starts_with(".."))
        return Invalid(found.string() + ": a sealed plugin does not find it; link it with -Wl,-soname," +
                       needed + ", and install it inside of the plugin's folder");
      FUSEBOX_TRY(AddBundled(manifest, found, list, seen));
      FUSEBOX_ASSIGN(const std::string sha256, HashOfFile(found));
      list.push_back({{"path", path}, {"sha256", sha256}});
      break;
    }
  }
  return {};
}

Result<Json> SealedEntry(const Manifest& manifest, size_t index, Json entry) {
  const std::string& path = manifest.libraries[index].path;
  FUSEBOX_ASSIGN(const LibraryFacts facts, FactsOfLibrary(path));
  if (static_cast<int>(facts.abi_major) != manifest.abi_major ||
      static_cast<int>(facts.min_host_minor) > manifest.abi_min_minor)
    return Invalid(fmt::format("{}: abi: it is {}.{}, but {} needs {}.{}; correct it", manifest.path,
                               manifest.abi_major, manifest.abi_min_minor, path, facts.abi_major,
                               facts.min_host_minor));
  Json bundled = Json::array();
  std::set<fs::path> seen = {path};
  FUSEBOX_TRY(AddBundled(manifest, path, bundled, seen));
  for (const char* key : {"sha256", "build_id", "abi", "bundled"}) entry.erase(key);
  entry["sha256"] = facts.sha256;
  if (!facts.build_id.empty()) entry["build_id"] = facts.build_id;
  entry["abi"] = {
      {"major", facts.abi_major}, {"minor", facts.abi_minor}, {"min_host_minor", facts.min_host_minor}};
  if (!bundled.empty()) entry["bundled"] = std::move(bundled);
  return entry;
}

// A list of objects, one per line.
std::string Lines(const Json& list) {
  std::string text = "[";
  for (const Json& entry : list) text += (text.size() > 1 ? ",\n  " : "\n  ") + entry.dump();
  return text + "]";
}

Result<Exit> SealManifest(const std::string& given) {
  const std::string path = ManifestAt(given);
  FUSEBOX_ASSIGN(const Manifest manifest, ReadManifest(path));
  if (manifest.libraries.empty())
    return Invalid(path + ": the plugin has no library to seal; sign its manifest, or pin it");
  Json libraries = Json::parse(manifest.text)["libraries"];
  for (size_t i = 0; i < libraries.size(); ++i) {
    FUSEBOX_ASSIGN(libraries[i], SealedEntry(manifest, i, libraries[i]));
  }
  const std::string text = WithKey(manifest.text, "libraries", Lines(libraries));
  FUSEBOX_TRY(WriteFile(path, std::as_bytes(std::span(text))));
  for (const ManifestLibrary& library : manifest.libraries) Message("sealed " + Printable(library.path));
  std::error_code error;
  if (fs::exists(path + ".sig", error))
    Message(Printable(path) + ".sig: the manifest has changed; sign it again");
  return Exit::kDone;
}

struct PinFlags {
  std::string subject;
  PluginFlags plugins;
};

// The manifest that a registry would use for the id, or that is at a path.
Result<Manifest> FindManifest(const PinFlags& flags) {
  std::error_code error;
  if (flags.subject.find('/') != std::string::npos) return ReadManifest(ManifestAt(flags.subject));
  PluginFlags plugins = flags.plugins;
  if (!fs::exists(plugins.config, error)) plugins.config.clear();  // the pin creates it
  FUSEBOX_ASSIGN(const Config config, ReadConfig(plugins));
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config));
  std::vector<std::string> ids;
  for (const PluginInfo& info : registry->plugins()) {
    if (info.built_in || info.state == PluginInfo::State::kShadowed) continue;
    if (info.manifest.id == flags.subject) return ReadManifest(info.manifest.path);
    ids.push_back(info.manifest.id);
  }
  return NotFound("plugin " + flags.subject + ": not found" + DidYouMean(flags.subject, ids) +
                  SearchedText(*registry));
}

Result<Exit> Pin(const PinFlags& flags) {
  const std::string file = flags.plugins.config.empty() ? UserPolicyFile() : flags.plugins.config;
  if (file.empty()) return Invalid("HOME is not set, so there is no policy file; name a file with --config");
  FUSEBOX_ASSIGN(const Manifest manifest, FindManifest(flags));
  FUSEBOX_ASSIGN(const std::vector<std::string> hashes, PinOf(manifest));
  if (hashes.empty())
    return NotFound(manifest.path + ": none of its libraries exists; install the plugin again");
  std::error_code error;
  std::string text = "{}\n";
  if (fs::exists(file, error)) {
    FUSEBOX_ASSIGN(text, ReadShortFile(file));
  }
  FUSEBOX_ASSIGN(Config config, ParseConfig(file, text));
  config.pins[manifest.id] = hashes;
  std::string pins = "{";
  for (const auto& [id, list] : config.pins)
    pins += (pins.size() > 1 ? ",\n  " : "\n  ") + Json(id).dump() + ": " + Json(list).dump();
  text = WithKey(std::move(text), "pins", pins + "}");
  fs::create_directories(fs::absolute(file).parent_path(), error);
  FUSEBOX_TRY(WriteFile(file, std::as_bytes(std::span(text))));
  Message(fmt::format("{}: {} is pinned to {}", Printable(file), manifest.id, Printable(manifest.path)));
  return Exit::kDone;
}

}  // namespace

void AddPluginSeal(CLI::App& plugin, Action& action) {
  CLI::App* app = plugin.add_subcommand(
      "seal",
      "Write the hash, build id and ABI of each library into the manifest; other libraries then do not load");
  auto path = std::make_shared<std::string>();
  app->add_option("manifest", *path, "Manifest or folder of the plugin")->type_name("PATH")->required();
  app->callback([path, &action] { action = [path] { return SealManifest(*path); }; });
}

void AddPluginPin(CLI::App& plugin, Action& action) {
  CLI::App* app = plugin.add_subcommand("pin",
                                        "Store the hash of a plugin in the user's policy, or with --config "
                                        "in that file; other libraries of this id then do not load");
  auto flags = std::make_shared<PinFlags>();
  app->add_option("subject", flags->subject, "Id, manifest or folder of the plugin")
      ->type_name("ID|PATH")
      ->required();
  AddPluginFlags(*app, flags->plugins);
  app->callback([flags, &action] { action = [flags] { return Pin(*flags); }; });
}

}  // namespace fusebox::cli
