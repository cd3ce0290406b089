// SPDX-License-Identifier: Apache-2.0
// Otherwise valijson prints and aborts.
#define VALIJSON_USE_EXCEPTIONS 1
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "host/base/json.h"
#include "host/plugin/steps.h"

namespace fusebox {
namespace {

using nlohmann::json;

constexpr size_t kLongestString = 4096;  // std::regex recurses once per character
constexpr int kDeepestDefault = 16;

std::vector<std::string> Keys(const json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// Resolves a reference within the schema, once.
const json& Resolve(const json& root, const json& schema) {
  static const json kNothing = json::object();
  if (!schema.is_object()) return kNothing;
  const auto reference = schema.find("$ref");
  if (reference == schema.end() || !reference->is_string()) return schema;
  const std::string& text = reference->get_ref<const std::string&>();
  if (text == "#") return root;
  if (!text.starts_with("#/")) return kNothing;
  try {
    const json& target = root.at(json::json_pointer(text.substr(1)));
    return target.is_object() ? target : kNothing;
  } catch (const json::exception&) {
    return kNothing;
  }
}

// The schema of a member or element; an empty object if unspecified.
const json& Child(const json& root, const json& schema, const std::string& token) {
  if (const auto properties = schema.find("properties");
      properties != schema.end() && properties->contains(token))
    return Resolve(root, (*properties)[token]);
  for (const char* key : {"items", "additionalProperties"}) {
    if (const auto child = schema.find(key); child != schema.end() && child->is_object())
      return Resolve(root, *child);
  }
  return Resolve(root, json());
}

bool HasType(const json& value, std::string_view type) {
  if (type == "integer") return value.is_number_integer();
  return type == "number" ? value.is_number() : type == value.type_name();
}

std::string Quoted(const json& value) {
  constexpr size_t kMost = 60;
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

std::string Join(const json& values) {
  std::string text;
  for (const json& value : values) text += (text.empty() ? "" : ", ") + Quoted(value);
  return text;
}

std::string ExplainEnum(const json& value, const json& choices) {
  std::vector<std::string> words;
  for (const json& choice : choices) {
    if (choice == value) return {};
    if (choice.is_string()) words.push_back(choice.get<std::string>());
  }
  const std::string meant =
      value.is_string() ? DidYouMean(value.get_ref<const std::string&>(), words) : std::string();
  return Quoted(value) + " is not one of " + Join(choices) + meant;
}

std::string ExplainBounds(const json& value, const json& schema) {
  if (!value.is_number()) return {};
  const double number = value.get<double>();
  const auto bound = [&](const char* key) -> const json* {
    const auto found = schema.find(key);
    return found != schema.end() && found->is_number() ? &*found : nullptr;
  };
  if (const json* b = bound("minimum"); b && number < b->get<double>())
    return Quoted(value) + " is less than " + Quoted(*b);
  if (const json* b = bound("maximum"); b && number > b->get<double>())
    return Quoted(value) + " is more than " + Quoted(*b);
  if (const json* b = bound("exclusiveMinimum"); b && number <= b->get<double>())
    return Quoted(value) + " is not above " + Quoted(*b);
  if (const json* b = bound("exclusiveMaximum"); b && number >= b->get<double>())
    return Quoted(value) + " is not below " + Quoted(*b);
  return {};
}

std::string ExplainMembers(const json& value, const json& schema) {
  if (!value.is_object()) return {};
  if (const auto required = schema.find("required"); required != schema.end() && required->is_array()) {
    for (const json& key : *required) {
      if (key.is_string() && !value.contains(key.get<std::string>())) return "lacks the key " + Quoted(key);
    }
  }
  const auto choices = schema.find("oneOf");
  if (choices == schema.end() || !choices->is_array()) return {};
  json keys = json::array();
  for (const json& choice : *choices) {
    if (!choice.is_object() || !choice.contains("required") || choice["required"].size() != 1) return {};
    keys.push_back(choice["required"][0]);
  }
  return "needs exactly one of the keys " + Join(keys);
}

// A readable message for common keywords; otherwise the validator's.
std::string Explain(const json& value, const json& schema, const std::string& otherwise) {
  if (const auto type = schema.find("type");
      type != schema.end() && type->is_string() && !HasType(value, type->get<std::string>()))
    return "expected " + type->get<std::string>() + ", not " + Quoted(value);
  std::string why;
  if (const auto choices = schema.find("enum"); choices != schema.end() && choices->is_array())
    why = ExplainEnum(value, *choices);
  if (why.empty()) why = ExplainBounds(value, schema);
  if (why.empty()) why = ExplainMembers(value, schema);
  if (why.empty() && otherwise.find("'pattern'") != std::string::npos && schema.contains("pattern"))
    why = Quoted(value) + " does not match " + schema["pattern"].get<std::string>();
  return why.empty() ? otherwise + ": " + Quoted(value) : why;
}

// The name in "... constraints: 'name'."; nothing for other errors.
std::optional<std::string> UnknownKey(const std::string& description) {
  constexpr std::string_view kBefore = "'additionalProperties' constraints: '";
  const size_t at = description.find(kBefore);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + kBefore.size();
  const size_t end = description.rfind('\'');
  return description.substr(begin, end - begin);
}

bool HasLongString(const json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().size() > kLongestString;
  if (!value.is_structured()) return false;
  for (const auto& [key, member] : value.items()) {
    if (key.size() > kLongestString || HasLongString(member)) return true;
  }
  return false;
}

// Patterns over every key cost more than all other checks together.
void RemoveVendorPatterns(json& schema) {
  if (!schema.is_structured()) return;
  if (schema.is_object()) schema.erase("patternProperties");
  for (json& member : schema) RemoveVendorPatterns(member);
}

void RemoveKeys(const json& root, const json& schema, json& value) {
  if (value.is_object() && schema.contains("patternProperties")) {
    for (const std::string& key : Keys(value)) {
      if (key.starts_with("x-")) value.erase(key);
    }
  }
  if (!value.is_structured()) return;
  for (const auto& [key, member] : value.items()) RemoveKeys(root, Child(root, schema, key), member);
}

// `depth` limits defaults that refer to themselves.
void Fill(const json& root, const json& schema, json& value, int depth) {
  const auto properties = schema.find("properties");
  if (!value.is_object() || properties == schema.end() || !properties->is_object() || depth > kDeepestDefault)
    return;
  for (const auto& [key, raw] : properties->items()) {
    const json& property = Resolve(root, raw);
    if (!value.contains(key) && property.contains("default")) value[key] = property["default"];
    if (value.contains(key)) Fill(root, property, value[key], depth + 1);
  }
}

bool IsPath(const json& root, const json& schema, const json& value) {
  if (const auto format = schema.find("format"); format != schema.end()) return *format == "path";
  const auto choices = schema.find("anyOf");
  if (choices == schema.end() || !choices->is_array()) return false;
  for (const json& raw : *choices) {
    const json& choice = Resolve(root, raw);
    if (const auto words = choice.find("enum"); words != choice.end() && words->is_array()) {
      if (std::find(words->begin(), words->end(), value) != words->end()) return false;
    } else if (const auto format = choice.find("format"); format != choice.end() && *format == "path") {
      return true;
    }
  }
  return false;
}

void FromFolder(const json& root, const json& schema, json& value, const std::filesystem::path& folder) {
  if (value.is_string() && IsPath(root, schema, value)) {
    // Keeps a trailing separator: it marks a folder.
    value = std::filesystem::absolute(folder / value.get<std::string>()).lexically_normal().string();
  }
  if (!value.is_structured()) return;
  for (const auto& [key, member] : value.items()) FromFolder(root, Child(root, schema, key), member, folder);
}

}  // namespace

struct JsonSchema::Impl {
  json text;  // unchanged
  valijson::Schema schema;
  mutable std::mutex mutex;
  mutable valijson::Validator validator;  // keeps compiled patterns, which cost more than all other checks
};

Result<JsonSchema> JsonSchema::Parse(std::string_view text, bool vendor_keys) {
  std::shared_ptr<Impl> impl;
  try {
    impl = std::make_shared<Impl>();
  } catch (const std::runtime_error&) {
    throw std::bad_alloc();  // what valijson means
  }
  FUSEBOX_ASSIGN(impl->text, ParseJson(text, "schema"));
  if (const std::string why = UnsoundReference(impl->text); !why.empty())
    return Invalid("not a JSON Schema: " + why);
  try {
    json checked = impl->text;
    if (vendor_keys) RemoveVendorPatterns(checked);
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(checked), impl->schema);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return Invalid(std::string("not a JSON Schema: ") + error.what());
  }
  JsonSchema schema;
  schema.impl_ = std::move(impl);
  return schema;
}

namespace {

// An unknown key often explains a missing one. Otherwise the first error is the deepest.
const valijson::ValidationResults::Error& MostTelling(const valijson::ValidationResults& results) {
  for (const auto& error : results) {
    if (UnknownKey(error.description)) return error;
  }
  return *results.begin();
}

JsonSchema::Violation Describe(const json& root, const json& value,
                               const valijson::ValidationResults::Error& error) {
  JsonSchema::Violation violation;
  const json* at = &value;
  const json* schema = &Resolve(root, root);
  for (size_t i = 1; i < error.context.size(); ++i) {
    const std::string token = error.context[i].substr(1, error.context[i].size() - 2);
    violation.pointer += "/" + EscapePointer(token);
    schema = &Child(root, *schema, token);
    at = &at->at(json::json_pointer("/" + EscapePointer(token)));
  }
  const auto key = UnknownKey(error.description);
  if (!key) {
    violation.what = Explain(*at, *schema, error.description);
    return violation;
  }
  const auto properties = schema->find("properties");
  violation.pointer += "/" + EscapePointer(*key);
  violation.what = "unknown key \"" + *key + "\"";
  if (properties != schema->end()) violation.what += DidYouMean(*key, Keys(*properties));
  return violation;
}

}  // namespace

std::optional<JsonSchema::Violation> JsonSchema::Check(const json& value) const {
  if (impl_ == nullptr) return std::nullopt;
  if (HasLongString(value))
    return Violation{"", "a string is longer than " + std::to_string(kLongestString) + " bytes"};
  try {
    valijson::ValidationResults results;
    const std::scoped_lock lock(impl_->mutex);
    if (impl_->validator.validate(impl_->schema, valijson::adapters::NlohmannJsonAdapter(value), &results))
      return std::nullopt;
    if (results.numErrors() == 0) return Violation{"", "does not meet its schema"};
    return Describe(impl_->text, value, MostTelling(results));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return Violation{"", error.what()};
  }
}

void JsonSchema::RemoveVendorKeys(json& value) const {
  if (impl_) RemoveKeys(impl_->text, Resolve(impl_->text, impl_->text), value);
}
void JsonSchema::FillDefaults(json& value) const {
  if (impl_) Fill(impl_->text, Resolve(impl_->text, impl_->text), value, 0);
}
void JsonSchema::ResolvePaths(json& value, const std::string& folder) const {
  if (impl_) FromFolder(impl_->text, Resolve(impl_->text, impl_->text), value, folder);
}

}  // namespace fusebox
