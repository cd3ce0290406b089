// SPDX-License-Identifier: Apache-2.0
// Finds misspelled keywords of a JSON Schema, which validators ignore.
#include <algorithm>

#include "host/base/json.h"
#include "host/plugin/steps.h"

namespace fusebox {
namespace {

using nlohmann::json;
using Unknown = std::optional<JsonSchema::Violation>;

// Keywords of draft 7, by what their values hold.
const std::vector<std::string> kValues = {"$schema",
                                          "$id",
                                          "$ref",
                                          "$comment",
                                          "title",
                                          "description",
                                          "default",
                                          "readOnly",
                                          "writeOnly",
                                          "examples",
                                          "multipleOf",
                                          "maximum",
                                          "exclusiveMaximum",
                                          "minimum",
                                          "exclusiveMinimum",
                                          "maxLength",
                                          "minLength",
                                          "pattern",
                                          "maxItems",
                                          "minItems",
                                          "uniqueItems",
                                          "maxProperties",
                                          "minProperties",
                                          "required",
                                          "const",
                                          "enum",
                                          "type",
                                          "format",
                                          "contentMediaType",
                                          "contentEncoding"};
const std::vector<std::string> kSchemas = {"items",         "additionalItems",
                                           "contains",      "additionalProperties",
                                           "propertyNames", "if",
                                           "then",          "else",
                                           "not",           "allOf",
                                           "anyOf",         "oneOf"};  // one, or a list
const std::vector<std::string> kMapsOfSchemas = {"properties", "patternProperties", "definitions", "$defs",
                                                 "dependencies"};

bool HasWord(const std::vector<std::string>& list, const std::string& word) {
  return std::ranges::find(list, word) != list.end();
}

Unknown InMembers(const json& members, const std::string& pointer) {
  if (!members.is_structured()) return std::nullopt;
  for (const auto& [key, member] : members.items()) {
    if (Unknown found = UnknownKeyword(member, pointer + "/" + EscapePointer(key))) return found;
  }
  return std::nullopt;
}

}  // namespace

Unknown UnknownKeyword(const json& schema, const std::string& pointer) {
  if (!schema.is_object()) return std::nullopt;
  for (const auto& [key, value] : schema.items()) {
    const std::string at = pointer + "/" + EscapePointer(key);
    Unknown found;
    if (HasWord(kMapsOfSchemas, key)) {
      found = InMembers(value, at);
    } else if (HasWord(kSchemas, key)) {
      found = value.is_array() ? InMembers(value, at) : UnknownKeyword(value, at);
    } else if (!HasWord(kValues, key) && !key.starts_with("x-")) {
      std::vector<std::string> known = kValues;
      known.insert(known.end(), kSchemas.begin(), kSchemas.end());
      known.insert(known.end(), kMapsOfSchemas.begin(), kMapsOfSchemas.end());
      found = {at, "unknown keyword \"" + key + "\" of JSON Schema" + DidYouMean(key, known)};
    }
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace fusebox
