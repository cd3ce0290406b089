// SPDX-License-Identifier: Apache-2.0
#include "host/base/json.h"
#include "host/plugin/steps.h"

// sdk/schema/*.json, embedded by the build.
extern "C" {
extern const char fusebox_schema_plugin_manifest_1[];
extern const char fusebox_schema_config_1[];
}

namespace fusebox {
namespace {

// Embedded schemas: a parse error is a bug.
JsonSchema OwnSchema(const char* text) {
  auto schema = JsonSchema::Parse(text, true);
  FUSEBOX_CHECK(schema.has_value());
  return *std::move(schema);
}

Result<Document> Read(const std::string& path, const JsonSchema& schema) {
  Document document;
  document.name = path;
  FUSEBOX_ASSIGN(document.text, ReadTextFile(path));
  FUSEBOX_ASSIGN(document.value, ParseJson(document.text, path));
  schema.RemoveVendorKeys(document.value);
  if (const auto violation = schema.Check(document.value))
    return document.Complain(violation->pointer, violation->what);
  return document;
}

}  // namespace

std::unexpected<Error> Document::Complain(std::string_view pointer, std::string_view what) const {
  std::string message = Place(name, PositionOf(text, pointer)) + ": ";
  if (!pointer.empty()) message += std::string(pointer.substr(1)) + ": ";
  return Invalid(message + std::string(what));
}

Result<Document> ReadManifestDocument(const std::string& path) {
  static const JsonSchema schema = OwnSchema(fusebox_schema_plugin_manifest_1);
  return Read(path, schema);
}

Result<Document> ReadConfigDocument(const std::string& path) {
  static const JsonSchema schema = OwnSchema(fusebox_schema_config_1);
  return Read(path, schema);
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
