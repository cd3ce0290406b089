// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "host/base/json.h"
#include "host/plugin/importers.h"
#include "host/plugin/steps.h"

namespace fusebox {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::string()
         : found->is_string()  ? found->get<std::string>()
                               : found->dump();
}

std::vector<std::string> Texts(const json& object, const char* key) {
  return object.value(key, std::vector<std::string>());
}

std::string At(std::string_view base, size_t i) { return std::string(base) + "/" + std::to_string(i); }

std::vector<std::string> BuiltinNames() {
  std::vector<std::string> names;
  for (const OpInfo& info : AllOps()) {
    if (info.code >= 0) names.emplace_back(info.name);
  }
  return names;
}

// Returns the text of a JSON Schema member, or an empty string if it is absent.
Result<std::string> SchemaText(const Document& document, const json& object, const std::string& at) {
  std::string text = Text(object, "options_schema");
  if (text.empty()) return text;
  if (const auto schema = JsonSchema::Parse(text); !schema)
    return document.Complain(at + "/options_schema", schema.error().message);
  if (const auto unknown = SchemaMistake(object["options_schema"], at + "/options_schema"))
    return document.Complain(unknown->pointer, unknown->what);
  return text;
}

// Checks the options_schema of an op, whose defaults become attributes.
Status CheckOpSchema(const Document& document, const ManifestOp& op, const std::string& at) {
  if (op.options_schema.empty()) return {};
  if (op.kind == FBX_OP_BUILTIN)
    return document.Complain(at, "is for custom ops; the format defines the options of " + op.name);
  FUSEBOX_ASSIGN(const JsonSchema schema, JsonSchema::Parse(op.options_schema));
  json defaults = json::object();
  schema.FillDefaults(defaults);
  if (const auto attrs = AttrsFromJson(defaults); !attrs)
    return document.Complain(at, "default of " + attrs.error().pointer.substr(1) + ": " + attrs.error().what);
  return {};
}

Result<std::vector<ManifestOp>> ReadOps(const Document& document, const json& list, const std::string& base) {
  std::vector<ManifestOp> ops;
  for (size_t i = 0; i < list.size(); ++i) {
    const json& entry = list[i];
    ManifestOp op;
    op.kind = entry.contains("builtin") ? FBX_OP_BUILTIN : FBX_OP_CUSTOM;
    op.name = Text(entry, op.kind == FBX_OP_BUILTIN ? "builtin" : "custom");
    op.version = entry.value("version", 0);
    FUSEBOX_ASSIGN(op.options_schema, SchemaText(document, entry, At(base, i)));
    if (op.kind == FBX_OP_BUILTIN) {
      const auto known = FindOp(op.name);
      if (!known || Info(*known).code < 0)
        return document.Complain(At(base, i) + "/builtin",
                                 "no builtin op \"" + op.name + "\"" + DidYouMean(op.name, BuiltinNames()));
    }
    if (entry.contains("quantization")) {
      const std::string at = At(base, i) + "/quantization";
      if (op.kind == FBX_OP_BUILTIN)
        return document.Complain(at,
                                 "is for custom ops; the format defines how " + op.name + " is quantized");
      FUSEBOX_ASSIGN(op.quantization, ReadQuantization(document, entry["quantization"], at));
    }
    FUSEBOX_TRY(CheckOpSchema(document, op, At(base, i) + "/options_schema"));
    ops.push_back(std::move(op));
  }
  return ops;
}

Status CheckUnique(const Document& document, const std::vector<ManifestOp>& ops) {
  std::set<std::tuple<fbx_op_kind, std::string_view, int>> seen;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!seen.emplace(ops[i].kind, ops[i].name, ops[i].version).second)
      return document.Complain(At("/provides/ops", i), "\"" + ops[i].name + "\" is duplicated");
  }
  return {};
}

// "2", "1-3", "1-"; the schema has validated it.
void ReadVersions(const std::string& text, ManifestRule& rule) {
  if (text.empty()) return;
  const size_t dash = text.find('-');
  rule.min_version = std::stoi(text.substr(0, dash));
  if (dash == std::string::npos) {
    rule.max_version = rule.min_version;
  } else if (dash + 1 < text.size()) {
    rule.max_version = std::stoi(text.substr(dash + 1));
  }
}

Result<ManifestRule> ReadRule(const Document& document, const json& entry, const std::string& at,
                              const std::string& name_space) {
  ManifestRule rule;
  rule.id = Text(entry, "id");
  if (!rule.id.starts_with(name_space + "."))
    return document.Complain(
        at + "/id", "\"" + rule.id + "\" does not begin with the plugin's namespace \"" + name_space + ".\"");
  rule.implements = Texts(entry, "implements");
  for (size_t i = 0; i < rule.implements.size(); ++i) {
    const size_t star = rule.implements[i].find('*');
    if (star != std::string::npos && star + 1 != rule.implements[i].size())
      return document.Complain(At(at + "/implements", i), "* is allowed only at the end");
  }
  ReadVersions(Text(entry, "versions"), rule);
  if (rule.max_version != 0 && rule.max_version < rule.min_version)
    return document.Complain(at + "/versions", "the range is empty; write the lower version first");
  if (entry.contains("when")) {
    rule.when = entry["when"].dump();
    if (const auto schema = ParseWhen(rule.when); !schema)
      return document.Complain(at + "/when", schema.error().message);
    for (const auto& [key, schema] : entry["when"].items()) {
      if (const auto unknown = SchemaMistake(schema, at + "/when/" + EscapePointer(key)))
        return document.Complain(unknown->pointer, unknown->what);
    }
  }
  if (entry.contains("emits")) {
    FUSEBOX_ASSIGN(rule.emits, ReadOps(document, entry["emits"], at + "/emits"));
  }
  if (entry.contains("rewrite")) {
    if (rule.emits.size() != 1)
      return document.Complain(at + "/rewrite", "the rule must emit exactly one op");
    FUSEBOX_ASSIGN(rule.rewrite, ReadRewrite(document, entry["rewrite"], at + "/rewrite"));
  }
  return rule;
}

// Without links: libraries must be within it.
Result<std::string> RealFolderOf(const std::string& manifest) {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(fs::absolute(manifest, error).parent_path(), error);
  if (error) return Invalid(error.message());
  return folder.string();
}

// The absolute path of the library; an error if it is outside the plugin's folder. It need not exist: opening
// it reports that.
Result<std::string> LibraryPath(const std::string& folder, std::string_view relative) {
  if (relative.starts_with('/')) return Invalid("the path must be relative to the manifest");
  std::error_code error;
  std::string path = folder;
  while (!relative.empty()) {
    const std::string_view part = relative.substr(0, relative.find('/'));
    relative.remove_prefix(std::min(part.size() + 1, relative.size()));
    if (part == "..") return Invalid("the path must not contain \"..\"");
    if (part.empty() || part == ".") continue;
    (path += '/') += part;
    if (struct stat status; lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) continue;
    const fs::path real = fs::weakly_canonical(path, error);
    if (error) return Invalid(error.message());
    const fs::path own(folder);
    if (std::mismatch(own.begin(), own.end(), real.begin(), real.end()).first != own.end())
      return Invalid("it is a link out of the plugin's folder, to " + real.string());
  }
  return path;
}

Status ReadLibraries(const Document& document, const json& list, Manifest& manifest) {
  for (const json& entry : list)
    manifest.libraries.push_back({.platform = Text(entry, "platform"),
                                  .file = Text(entry, "path"),
                                  .requires_cpu = Texts(entry, "requires_cpu"),
                                  .sha256 = Text(entry, "sha256"),
                                  .path = {}});
  FUSEBOX_ASSIGN(const std::string folder, RealFolderOf(manifest.path).At(manifest.path));
  if (const auto misplaced = PlaceLibraries(manifest, folder))
    return document.Complain(At("/libraries", misplaced->library) + "/path", misplaced->why);
  return {};
}

Status ReadProvides(const Document& document, const json& provides, Manifest& manifest) {
  const json none = json::array();
  const json& rules = provides.contains("rules") ? provides["rules"] : none;
  for (size_t i = 0; i < rules.size(); ++i) {
    FUSEBOX_ASSIGN(ManifestRule rule,
                   ReadRule(document, rules[i], At("/provides/rules", i), manifest.name_space));
    for (const ManifestRule& other : manifest.rules) {
      if (other.id == rule.id)
        return document.Complain(At("/provides/rules", i) + "/id", "\"" + rule.id + "\" is duplicated");
    }
    manifest.rules.push_back(std::move(rule));
  }
  if (provides.contains("ops")) {
    FUSEBOX_ASSIGN(manifest.ops, ReadOps(document, provides["ops"], "/provides/ops"));
    FUSEBOX_TRY(CheckUnique(document, manifest.ops));
  }
  if (provides.contains("delegates")) {
    for (const json& entry : provides["delegates"]) {
      const std::string at = At("/provides/delegates", manifest.delegates.size());
      FUSEBOX_ASSIGN(std::string schema, SchemaText(document, entry, at));
      const std::string name = Text(entry, "name");
      if (std::ranges::find(manifest.delegates, name, &ManifestDelegate::name) != manifest.delegates.end())
        return document.Complain(at + "/name", "\"" + name + "\" is duplicated");
      const std::optional<Attrs> defaults = DefaultsOf(schema);
      manifest.delegates.push_back({name, std::move(schema), entry.value("default", false), defaults});
    }
  }
  if (provides.contains("importers")) FUSEBOX_TRY(CheckImporters(document, provides["importers"]));
  manifest.provides_extensions = Texts(provides, "extensions");
  return {};
}

// Without libraries, a plugin can only have rules without code.
Status CheckCodeless(const Document& document, const Manifest& manifest) {
  const auto coded = std::find_if(manifest.rules.begin(), manifest.rules.end(),
                                  [](const ManifestRule& rule) { return !rule.rewrite; });
  std::string needing;
  if (coded != manifest.rules.end()) needing = "rule " + coded->id + " without \"rewrite\"";
  else if (!manifest.ops.empty()) needing = "kernel of " + manifest.ops[0].name;
  else if (!manifest.delegates.empty()) needing = "delegate " + manifest.delegates[0].name;
  else if (!manifest.provides_extensions.empty()) needing = "extension " + manifest.provides_extensions[0];
  if (needing.empty()) return {};
  return document.Complain("", "lacks the key \"libraries\", which its " + needing +
                                   " needs; list the library, or build with fusebox_add_plugin, which does");
}

// Everything but the libraries.
Result<Manifest> ManifestIn(const Document& document) {
  const json& value = document.value;
  const json& plugin = value["plugin"];
  Manifest manifest;
  manifest.path = document.name;
  manifest.text = document.text;
  manifest.id = Text(plugin, "id");
  manifest.version = Text(plugin, "version");
  manifest.name_space = Text(plugin, "namespace");
  manifest.description = Text(plugin, "description");
  manifest.license = Text(plugin, "license");
  manifest.priority = plugin.value("priority", 0);
  manifest.abi_major = value["abi"].value("major", 1);
  manifest.abi_min_minor = value["abi"].value("min_minor", 0);
  FUSEBOX_ASSIGN(manifest.options_schema, SchemaText(document, value, ""));
  manifest.defaults = DefaultsOf(manifest.options_schema);
  if (value.contains("requires")) manifest.requires_extensions = Texts(value["requires"], "extensions");
  FUSEBOX_TRY(ReadProvides(document, value["provides"], manifest));
  return manifest;
}

}  // namespace

Result<JsonSchema> ParseWhen(const std::string& text) {
  const json when = json::parse(text, nullptr, false);
  json schema = {{"properties", when}, {"required", json::array()}};
  for (const auto& [key, value] : when.items())
    if (!value.contains("default")) schema["required"].push_back(key);
  return JsonSchema::Parse(schema.dump());
}

std::optional<Misplaced> PlaceLibraries(Manifest& manifest, const std::string& folder) {
  std::string others;
  for (size_t i = 0; i < manifest.libraries.size(); ++i) {
    ManifestLibrary& library = manifest.libraries[i];
    auto path = LibraryPath(folder, library.file);
    if (!path) return Misplaced{i, path.error().message};
    library.path = *std::move(path);
    if (!manifest.library.empty()) continue;
    if (library.platform != PlatformKey()) {
      others += (others.empty() ? "" : ", ") + library.platform;
      continue;
    }
    const std::string missing = MissingCpuFeature(library.requires_cpu);
    if (missing.empty()) {
      manifest.library = library.path;
      manifest.requires_cpu = library.requires_cpu;
    } else {
      manifest.no_library = library.file + " needs the CPU feature " + missing + ", which this machine lacks";
    }
  }
  if (!manifest.library.empty()) manifest.no_library.clear();
  else if (manifest.no_library.empty() && !manifest.libraries.empty())
    manifest.no_library = "it has no library for " + std::string(PlatformKey()) + ", only for " + others +
                          "; add one to \"libraries\"";
  return std::nullopt;
}

std::optional<Attrs> DefaultsOf(const std::string& text) {
  if (text.empty()) return Attrs();
  const auto schema = JsonSchema::Parse(text);
  if (!schema) return std::nullopt;
  json value = json::object();
  schema->FillDefaults(value);
  if (schema->Check(value)) return std::nullopt;
  auto attrs = AttrsFromJson(value);
  if (!attrs) return std::nullopt;
  return *std::move(attrs);
}

const ManifestLibrary* Manifest::Chosen() const {
  const auto chosen = std::ranges::find(libraries, library, &ManifestLibrary::path);
  return chosen == libraries.end() ? nullptr : &*chosen;
}

Result<std::vector<BundledLibrary>> BundledIn(const Manifest& manifest) {
  std::vector<BundledLibrary> bundled;
  const ManifestLibrary* const chosen = manifest.Chosen();
  if (chosen == nullptr || chosen->sha256.empty()) return bundled;
  const json document = json::parse(manifest.text);
  const json& entry = document["libraries"][static_cast<size_t>(chosen - manifest.libraries.data())];
  FUSEBOX_ASSIGN(const std::string folder, RealFolderOf(manifest.path));
  for (const json& library : entry.value("bundled", json::array())) {
    FUSEBOX_ASSIGN(std::string path, LibraryPath(folder, Text(library, "path")));
    bundled.push_back({std::move(path), SealedWith(manifest, Text(library, "sha256"))});
  }
  return bundled;
}

Result<Manifest> ReadManifest(const std::string& path) {
  FUSEBOX_ASSIGN(std::string text, ReadShortFile(path));
  return ManifestFrom(path, std::move(text));
}

Result<Manifest> ManifestFrom(const std::string& path, std::string text) {
  FUSEBOX_ASSIGN(const Document document, ParseManifestDocument(path, std::move(text)));
  FUSEBOX_ASSIGN(Manifest manifest, ManifestIn(document));
  if (document.value.contains("libraries")) {
    FUSEBOX_TRY(ReadLibraries(document, document.value["libraries"], manifest));
  } else {
    FUSEBOX_TRY(CheckCodeless(document, manifest));
  }
  return manifest;
}

Result<Manifest> ParseManifest(std::string_view text) {
  FUSEBOX_ASSIGN(const Document document, ParseManifestDocument("built in", std::string(text)));
  return ManifestIn(document);
}

}  // namespace fusebox
