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

Status ReadDelegates(const Document& document, const json& list, Config& config) {
  auto& delegates = config.delegates.emplace();
  for (size_t i = 0; i < list.size(); ++i) {
    Config::Delegate delegate{list[i]["name"].get<std::string>(), {}};
    if (list[i].contains("options")) {
      const std::string at = "/delegates/" + std::to_string(i) + "/options";
      FUSEBOX_ASSIGN(delegate.options, ReadOptions(document, list[i]["options"], at));
    }
    delegates.push_back(std::move(delegate));
  }
  return {};
}

}  // namespace

std::string FolderOf(const Config& config) {
  return std::filesystem::path(config.path).parent_path().string();
}

Result<Config> ReadConfig(const std::string& path) {
  FUSEBOX_ASSIGN(const Document document, ReadConfigDocument(path));
  const json& value = document.value;
  Config config;
  config.path = path;
  const std::filesystem::path folder = FolderOf(config);
  for (const std::string& text : value.value("plugin_path", std::vector<std::string>()))
    config.plugin_path.push_back((folder / text).string());
  config.allow = value.value("allow", config.allow);
  config.deny = value.value("deny", config.deny);
  config.prefer = value.value("prefer", config.prefer);
  if (value.contains("options")) {
    for (const auto& [id, options] : value["options"].items()) {
      FUSEBOX_ASSIGN(config.options[id], ReadOptions(document, options, "/options/" + EscapePointer(id)));
    }
  }
  if (value.contains("delegates")) FUSEBOX_TRY(ReadDelegates(document, value["delegates"], config));
  return config;
}

}  // namespace fusebox
