// SPDX-License-Identifier: Apache-2.0
#include "check/example.h"

#include <algorithm>

#include "host/base/json.h"
#include "host/plugin/steps.h"

namespace fusebox::check {
namespace {

using nlohmann::json;

// Returns null if there is no example.
json ExampleOf(const json& schema) {
  if (schema.contains("default")) return schema["default"];
  if (schema.contains("const")) return schema["const"];
  if (schema.contains("enum") && !schema["enum"].empty()) return schema["enum"][0];
  const std::string type = schema.contains("type") && schema["type"].is_string() ? schema["type"] : "integer";
  const double low = schema.value("minimum", 1.0);
  if (type == "integer") return static_cast<int64_t>(std::max(low, 1.0));
  if (type == "number") return schema.contains("minimum") ? low + 0.5 : 0.5;
  if (type == "boolean") return false;
  if (type == "string") return std::string(schema.value("minLength", size_t{0}), 'a');
  if (type == "array") return json::array({1});
  return nullptr;
}

}  // namespace

Result<Attrs> ExampleAttributes(const std::string& text, bool is_when) {
  if (text.empty()) return Attrs();
  FUSEBOX_ASSIGN(const json schema, ParseJson(text, "schema"));
  const json properties = is_when ? schema : schema.value("properties", json::object());
  json example = json::object();
  for (const auto& [name, of] : properties.items())
    if (json value = ExampleOf(of); !value.is_null()) example[name] = std::move(value);
  auto attrs = AttrsFromJson(example);
  if (!attrs) return Invalid(attrs.error().what);
  return *std::move(attrs);
}

}  // namespace fusebox::check
