// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "host/base/json.h"
#include "host/plugin/steps.h"

namespace fusebox {
namespace {

using nlohmann::json;

// The member; null if absent or if `object` is not an object.
const json& MemberOf(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string TextOf(const json& object, const char* key) {
  const json& member = MemberOf(object, key);
  return member.is_string() ? member.get<std::string>() : std::string();
}

}  // namespace

Manifest UnreadManifest(const std::string& path) {
  return {.path = path, .id = std::filesystem::absolute(path).parent_path().filename().string()};
}

Manifest Salvage(const std::string& path) {
  Manifest manifest = UnreadManifest(path);
  const auto text = ReadShortFile(path);
  const auto parsed = text ? ParseJson(*text, path) : std::unexpected(text.error());
  if (!parsed) return manifest;
  const json& plugin = MemberOf(*parsed, "plugin");
  const json& provides = MemberOf(*parsed, "provides");
  if (std::string id = TextOf(plugin, "id"); !id.empty()) manifest.id = std::move(id);
  manifest.version = TextOf(plugin, "version");
  for (const json& op : MemberOf(provides, "ops")) {
    const bool builtin = op.is_object() && op.contains("builtin");
    manifest.ops.push_back({.kind = builtin ? FBX_OP_BUILTIN : FBX_OP_CUSTOM,
                            .name = TextOf(op, builtin ? "builtin" : "custom")});
  }
  for (const json& entry : MemberOf(provides, "rules")) {
    ManifestRule rule{.id = TextOf(entry, "id")};
    for (const json& name : MemberOf(entry, "implements"))
      if (name.is_string()) rule.implements.push_back(name.get<std::string>());
    manifest.rules.push_back(std::move(rule));
  }
  return manifest;
}

}  // namespace fusebox
