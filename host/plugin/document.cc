// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <new>
#include <utility>

#include "host/base/json.h"
#include "host/plugin/steps.h"

// sdk/schema/*.json, embedded by the build.
extern "C" {
extern const char fusebox_schema_plugin_manifest_1[];
extern const char fusebox_schema_config_1[];
}

namespace fusebox {
namespace {

constexpr int kManifestMajor = 1;
constexpr int kManifestMinor = 0;

// Embedded schemas are valid, so that only memory can be missing.
JsonSchema OwnSchema(const char* text) {
  auto schema = JsonSchema::Parse(text, true);
  if (!schema) throw std::bad_alloc();
  return *std::move(schema);
}

Result<Document> ParsedDocument(std::string name, std::string text) {
  Document document{std::move(name), std::move(text), {}};
  FUSEBOX_ASSIGN(document.value, ParseJson(document.text, document.name));
  return document;
}

Result<Document> CheckedDocument(Document document, const JsonSchema& schema) {
  schema.RemoveVendorKeys(document.value);
  if (const auto violation = schema.Check(document.value))
    return document.Complain(violation->pointer, violation->what);
  return document;
}

// Returns the version of a manifest that this host is too old for, or an empty string if it is not, or if it
// is no version.
std::string NewerVersion(const nlohmann::json& manifest) {
  if (!manifest.is_object() || !manifest.contains("manifest_version")) return {};
  const nlohmann::json& version = manifest["manifest_version"];
  int major = 0;
  int minor = 0;
  if (!version.is_string() ||
      std::sscanf(version.get_ref<const std::string&>().c_str(), "%d.%d", &major, &minor) != 2)
    return {};
  const bool newer = std::pair(major, minor) > std::pair(kManifestMajor, kManifestMinor);
  return newer ? version.get<std::string>() : std::string();
}

}  // namespace

std::unexpected<Error> Document::Complain(std::string_view pointer, std::string_view what) const {
  std::string message = Place(name, PositionOf(text, pointer)) + ": ";
  if (!pointer.empty()) message += std::string(pointer.substr(1)) + ": ";
  return Invalid(message + std::string(what));
}

Result<Document> ParseManifestDocument(std::string name, std::string text) {
  static const JsonSchema schema = OwnSchema(fusebox_schema_plugin_manifest_1);
  FUSEBOX_ASSIGN(Document document, ParsedDocument(std::move(name), std::move(text)));
  if (const std::string version = NewerVersion(document.value); !version.empty())
    return document.Complain("/manifest_version", "it needs a newer Fusebox: the manifest has version " +
                                                      version + ", this host reads versions up to " +
                                                      std::to_string(kManifestMajor) + "." +
                                                      std::to_string(kManifestMinor));
  return CheckedDocument(std::move(document), schema);
}

Result<Document> ParseConfigDocument(std::string name, std::string text) {
  static const JsonSchema schema = OwnSchema(fusebox_schema_config_1);
  return ParseDocument(std::move(name), std::move(text), schema);
}

Result<Document> ParseDocument(std::string name, std::string text, const JsonSchema& schema) {
  FUSEBOX_ASSIGN(Document document, ParsedDocument(std::move(name), std::move(text)));
  return CheckedDocument(std::move(document), schema);
}

std::string EscapePointer(std::string_view token) {
  std::string escaped;
  for (const char c : token) {
    if (c == '~' || c == '/') {
      escaped += c == '~' ? "~0" : "~1";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace fusebox
