// SPDX-License-Identifier: Apache-2.0
#include "host/c/options.h"

#include "host/plugin/steps.h"

// sdk/schema/*.json, embedded by the build.
extern "C" {
extern const char fusebox_schema_model_options_1[];
extern const char fusebox_schema_session_options_1[];
}

namespace fusebox::c {
namespace {

JsonSchema OptionsSchema(const char* text) {
  auto schema = JsonSchema::Parse(text);
  FUSEBOX_CHECK(schema.has_value());
  return *std::move(schema);
}

}  // namespace

Result<ModelOptions> ParseModelOptions(const char* json) {
  static const JsonSchema schema = OptionsSchema(fusebox_schema_model_options_1);
  ModelOptions options;
  if (json == nullptr) return options;
  FUSEBOX_ASSIGN(const Document document, ParseDocument("model options", json, schema));
  const nlohmann::json& value = document.value;
  options.name = value.value("name", options.name);
  options.fuse = value.value("fuse", options.fuse);
  if (value.value("import", "never") == "auto") options.import_ops = ImportOps::kAuto;
  const std::string missing = value.value("missing", "warn");
  options.missing = missing == "error"  ? Missing::kError
                    : missing == "body" ? Missing::kBody
                                        : Missing::kWarn;
  options.time_limit_ms = value.value("time_limit_ms", options.time_limit_ms);
  if (value.contains("delegates")) {
    FUSEBOX_ASSIGN(options.delegates, ReadDelegates(document));
  }
  if (value.contains("delegate_options")) options.delegate_options = value["delegate_options"].dump();
  return options;
}

Result<SessionOptions> ParseSessionOptions(const char* json) {
  static const JsonSchema schema = OptionsSchema(fusebox_schema_session_options_1);
  SessionOptions options;
  if (json == nullptr) return options;
  FUSEBOX_ASSIGN(const Document document, ParseDocument("session options", json, schema));
  const nlohmann::json& value = document.value;
  options.signature = value.value("signature", options.signature);
  options.threads = value.value("threads", options.threads);
  options.keep_values = value.value("keep_values", options.keep_values);
  options.profile = value.value("profile", options.profile);
  options.shadow = value.value("shadow", options.shadow);
  options.memory_limit = value.value("memory_limit", options.memory_limit);
  return options;
}

}  // namespace fusebox::c
