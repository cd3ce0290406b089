// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/importers.h"

#include <algorithm>
#include <limits>

#include "host/plugin/steps.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

Result<int64_t> Whole(const json& value) {
  constexpr int64_t kMost = 1 << 30;
  if (!value.is_number_integer() || value < -kMost || value > kMost)
    return Invalid(value.dump() + " is no factor; it must be an integer");
  return value.get<int64_t>();
}

// An integer, or a key of the configuration.
Result<int64_t> Factor(const json& factor, const json& config) {
  if (!factor.is_string()) return Whole(factor);
  const auto found = config.find(factor.get<std::string>());
  if (found == config.end()) return Invalid("the configuration has no key " + factor.get<std::string>());
  return Whole(*found);
}

// The value of {"from": KEY, "value": OTHER, "times": F, "over": F}.
Result<json> FromConfig(const json& from, const json& config) {
  const auto key = from["from"].get<std::string>();
  json value = config.value(key, json());
  if (value.is_null() && from.contains("value")) value = from["value"];
  if (value.is_null() && !config.contains(key)) return Invalid("the configuration has no key " + key);
  if (!from.contains("times") && !from.contains("over")) return value;
  FUSEBOX_ASSIGN(int64_t number, Whole(value).At(key));
  if (from.contains("times")) {
    FUSEBOX_ASSIGN(const int64_t times, Factor(from["times"], config).At("times"));
    number *= times;
  }
  if (from.contains("over")) {
    FUSEBOX_ASSIGN(const int64_t over, Factor(from["over"], config).At("over"));
    if (over == 0 || number % over != 0)
      return Invalid(key + ": " + std::to_string(number) + " is no multiple of " + std::to_string(over));
    number /= over;
  }
  return json(number);
}

}  // namespace

Importers::Importers(const Registry& registry) : prefer_(registry.config().prefer) {
  for (const PluginInfo& info : registry.plugins()) {
    if (info.state == PluginInfo::State::kShadowed) continue;
    const bool usable = info.state == PluginInfo::State::kOk;
    for (Importer& importer : ImportersOf(info.manifest))
      listed_.push_back({std::move(importer), info.manifest.path,
                         usable ? "" : std::string(Name(info.state)) + ": " + info.why});
  }
}

Result<const Importer*> Importers::Find(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    const auto preferred = prefer_.find(name);
    const Listed* best = nullptr;
    const Listed* other = nullptr;
    size_t rank = std::numeric_limits<size_t>::max();
    for (const Listed& one : listed_) {
      if (!one.why_not.empty() || std::ranges::find(one.importer.classes, name) == one.importer.classes.end())
        continue;
      size_t own = 0;
      if (preferred != prefer_.end())
        own = static_cast<size_t>(std::ranges::find(preferred->second, one.importer.plugin) -
                                  preferred->second.begin());
      if (own == rank) other = &one;
      if (own >= rank) continue;
      best = &one;
      other = nullptr;
      rank = own;
    }
    if (other != nullptr)
      return Invalid("class " + name + ": both " + best->importer.plugin + " (" + best->manifest + ") and " +
                     other->importer.plugin + " (" + other->manifest +
                     ") have an importer for it; set the preferred one in fusebox.json: \"prefer\": {\"" +
                     name + "\": [\"" + best->importer.plugin + "\"]}");
    if (best != nullptr) return &best->importer;
  }
  return nullptr;
}

std::vector<std::string> Importers::Unusable(const std::vector<std::string>& names) const {
  std::vector<std::string> out;
  for (const Listed& one : listed_) {
    const bool lists = std::ranges::any_of(one.importer.classes, [&](const std::string& name) {
      return std::ranges::find(names, name) != names.end();
    });
    if (lists && !one.why_not.empty()) out.push_back(one.importer.plugin + " (" + one.why_not + ")");
  }
  return out;
}

Result<json> WithConfig(const json& value, const json& config) {
  if (IsFrom(value)) return FromConfig(value, config);
  if (!value.is_structured()) return value;
  json out = value;
  for (json& member : out) {
    FUSEBOX_ASSIGN(member, WithConfig(member, config));
  }
  return out;
}

bool Exists(const json& entry, const json& config) {
  if (!entry.contains("when")) return true;
  const auto schema = ParseWhen(entry["when"].dump());
  return schema && !schema->Check(config);
}

}  // namespace fusebox::keras
