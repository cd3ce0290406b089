// SPDX-License-Identifier: Apache-2.0
#include "converter/c/options.h"

#include <mutex>

#include "host/plugin/steps.h"

// sdk/schema/convert-options-1.json, embedded by the build.
extern "C" const char fusebox_schema_convert_options_1[];

namespace fusebox::c {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

Result<std::shared_ptr<Registry>> RegistryOf(const json& value, const OwnPlugins& own) {
  Config config;
  if (value.contains("config")) {
    FUSEBOX_ASSIGN(config, ReadConfig(value["config"].get<std::string>()));
  }
  if (own.config != nullptr) {
    FUSEBOX_ASSIGN(config, ParseConfig("configuration", own.config, std::move(config)));
  }
  const auto plugins = value.value("plugin", Strings());
  config.plugins.insert(config.plugins.begin(), plugins.begin(), plugins.end());
  FUSEBOX_ASSIGN(auto registry, Registry::Create(config, own.linked));
  // A host that passes its configuration has decided on its plugins.
  if (own.config == nullptr) FUSEBOX_TRY(registry->LoadNamed());
  return registry;
}

// The plugins of a host that opens one file after the other are searched once.
Result<std::shared_ptr<Registry>> SharedRegistryOf(const json& value, const OwnPlugins& own) {
  if (own.number == 0) return RegistryOf(value, own);
  static std::mutex mutex;
  static auto& last = *new std::pair<uint64_t, std::shared_ptr<Registry>>;  // outlives other static objects
  const std::lock_guard lock(mutex);
  if (last.first != own.number) {
    FUSEBOX_ASSIGN(auto registry, RegistryOf(value, own));
    last = {own.number, std::move(registry)};
  }
  return last.second;
}

// Rejects options that have no effect without fusion.
Status CheckEffect(const Document& document) {
  const std::string composites = document.value.value("composites", "fuse");
  if (document.value.value("placeholders", "fuse") == "error" &&
      (composites != "fuse" || document.value.value("verify", "sample") == "off"))
    return document.Complain("/placeholders", "has no effect without fusion and verification");
  if (composites == "fuse") return {};
  const auto idle = [&](const std::string& key) {
    return document.Complain("/" + key,
                             "has no effect with composites \"" + composites + "\", which fuses nothing");
  };
  if (document.value.value("require_full_fusion", false)) return idle("require_full_fusion");
  if (document.value.value("verify", "off") != "off") return idle("verify");
  if (document.value.value("keep_bodies", "none") == "all") return idle("keep_bodies");
  return {};
}

// Sets an option that is one of `words`, if it is given.
template <class T>
void Choose(const json& value, const char* key, const converter::Words<T>& words, T& option) {
  if (value.contains(key)) option = converter::Meaning(words, value[key].get<std::string>());
}

}  // namespace

Result<ConvertOptions> ParseConvertOptions(const char* text, const OwnPlugins& own) {
  static const JsonSchema schema = *JsonSchema::Parse(fusebox_schema_convert_options_1);
  FUSEBOX_ASSIGN(const Document document,
                 ParseDocument("conversion options", text != nullptr ? text : "{}", schema));
  FUSEBOX_TRY(CheckEffect(document));
  const json& value = document.value;
  ConvertOptions out;
  converter::Options& options = out.options;
  options.signatures = value.value("signature", Strings());
  options.inputs = value.value("inputs", Strings());
  options.outputs = value.value("outputs", Strings());
  if (value.contains("batch")) options.batch = value["batch"].get<int64_t>();
  const json shapes = value.value("shape", json::object());
  for (const auto& [name, dims] : shapes.items())
    options.shapes[name] = Shape(dims.get<std::vector<int64_t>>());
  Choose(value, "composites", converter::kComposites, options.composites);
  Choose(value, "keep_bodies", converter::kKeepBodies, options.keep_bodies);
  Choose(value, "verify", converter::kVerify, options.verify);
  Choose(value, "quantize", converter::kQuantize, options.quantization);
  Choose(value, "input_type", converter::kEndTypes, options.input_type);
  Choose(value, "output_type", converter::kEndTypes, options.output_type);
  Choose(value, "placeholders", converter::kPlaceholders, options.placeholders);
  options.verify_seed = value.value("verify_seed", options.verify_seed);
  options.per_channel_fc = value.value("per_channel_fc", false);
  options.calibration = value.value("calibration", options.calibration);
  out.require_full_fusion = value.value("require_full_fusion", false);
  FUSEBOX_ASSIGN(options.registry, SharedRegistryOf(value, own));
  return out;
}

}  // namespace fusebox::c
