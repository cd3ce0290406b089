// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "host/plugin/steps.h"

namespace fusebox {
namespace {

using nlohmann::json;

Result<Attrs> ReadOptions(const Document& document, const json& object, const std::string& at) {
  auto attrs = AttrsFromJson(object);
  if (!attrs) return document.Complain(at + attrs.error().pointer, attrs.error().what);
  return *std::move(attrs);
}

std::vector<std::string> Under(const std::filesystem::path& folder, const json& list) {
  std::vector<std::string> paths;
  for (const json& path : list) paths.push_back((folder / path.get<std::string>()).string());
  return paths;
}

// Sets what the document has. Relative paths are relative to the folder of `config`.
Status ReadInto(const Document& document, Config& config) {
  const json& value = document.value;
  const std::filesystem::path folder = FolderOf(config);
  if (value.contains("plugins")) config.plugins = Under(folder, value["plugins"]);
  if (value.contains("plugin_path")) config.plugin_path = Under(folder, value["plugin_path"]);
  config.search_default_path = value.value("search_default_path", config.search_default_path);
  config.allow = value.value("allow", config.allow);
  config.deny = value.value("deny", config.deny);
  config.pins = value.value("pins", config.pins);
  config.require_signed = value.value("require_signed", config.require_signed);
  config.prefer = value.value("prefer", config.prefer);
  if (value.contains("options")) {
    config.options.clear();
    for (const auto& [id, options] : value["options"].items()) {
      FUSEBOX_ASSIGN(config.options[id], ReadOptions(document, options, "/options/" + EscapePointer(id)));
    }
  }
  if (value.contains("delegates")) {
    FUSEBOX_ASSIGN(config.delegates, ReadDelegates(document));
  }
  return {};
}

std::vector<std::string> Absolute(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) out.push_back(std::filesystem::absolute(path).string());
  return out;
}

}  // namespace

std::string FolderOf(const Config& config) {
  return std::filesystem::path(config.path).parent_path().string();
}

Result<std::vector<Config::Delegate>> ReadDelegates(const Document& document) {
  const json& list = document.value["delegates"];
  std::vector<Config::Delegate> delegates;
  for (size_t i = 0; i < list.size(); ++i) {
    Config::Delegate delegate{list[i]["name"].get<std::string>(), {}};
    if (list[i].contains("options")) {
      const std::string at = "/delegates/" + std::to_string(i) + "/options";
      FUSEBOX_ASSIGN(delegate.options, ReadOptions(document, list[i]["options"], at));
    }
    delegates.push_back(std::move(delegate));
  }
  return delegates;
}

Result<Config> ReadConfig(const std::string& path) {
  FUSEBOX_ASSIGN(std::string text, ReadShortFile(path));
  return ParseConfig(path, std::move(text), {.path = path});
}

Result<Config> ParseConfig(const std::string& name, std::string json, Config config) {
  FUSEBOX_ASSIGN(const Document document, ParseConfigDocument(name, std::move(json)));
  FUSEBOX_TRY(ReadInto(document, config));
  return config;
}

std::string TextOf(const Config& config) {
  nlohmann::json out = {{"search_default_path", config.search_default_path}};
  const auto add = [&](const char* key, const auto& value) {
    if (!value.empty()) out[key] = value;
  };
  add("plugins", Absolute(config.plugins));
  add("plugin_path", Absolute(config.plugin_path));
  add("allow", config.allow);
  add("deny", config.deny);
  add("pins", config.pins);
  add("require_signed", config.require_signed);
  add("prefer", config.prefer);
  for (const auto& [id, options] : config.options) out["options"][id] = JsonFromAttrs(options);
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace fusebox
