// SPDX-License-Identifier: Apache-2.0
#include "host/plugin/importers.h"

#include <algorithm>
#include <limits>
#include <set>

#include "host/base/json.h"
#include "host/plugin/tensor_json.h"

namespace fusebox {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

const json kNone = json::array();
constexpr int64_t kMostElements = int64_t{1} << 20;  // of a constant

bool IsFrom(const json& value) {
  return value.is_object() && value.contains("from") && value["from"].is_string();
}

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

// Checks one importer of a document.
class Checker {
 public:
  Checker(const Document& document, const json& entry, std::string at)
      : document_(document), entry_(entry), at_(std::move(at)) {}

  Status Check() {
    FUSEBOX_TRY(CheckConfig());
    for (const char* list : {"weights", "layers", "ops"}) FUSEBOX_TRY(CheckConditions(list));
    FUSEBOX_TRY(CheckWeights());
    FUSEBOX_TRY(CheckConstants());
    FUSEBOX_TRY(CheckLayers());
    return entry_.contains("ops") ? CheckOps() : CheckRuleForm();
  }

 private:
  std::unexpected<Error> Wrong(const std::string& at, const std::string& what) const {
    return document_.Complain(at_ + at, what);
  }
  const json& List(const char* key) const { return entry_.contains(key) ? entry_[key] : kNone; }

  Status CheckSchema(const json& schema, const std::string& at) const {
    if (const auto parsed = JsonSchema::Parse(schema.dump()); !parsed)
      return Wrong(at, parsed.error().message);
    if (const auto mistake = SchemaMistake(schema, at_ + at))
      return document_.Complain(mistake->pointer, mistake->what);
    return {};
  }

  Status CheckConfig() {
    if (!entry_.contains("config_schema")) return {};
    const json& schema = entry_["config_schema"];
    FUSEBOX_TRY(CheckSchema(schema, "/config_schema"));
    open_ = schema.contains("additionalProperties") && schema["additionalProperties"] != false;
    if (schema.contains("properties"))
      for (const auto& [key, value] : schema["properties"].items()) keys_.push_back(key);
    return {};
  }

  Status CheckKey(const std::string& key, const std::string& at) const {
    if (open_ || std::ranges::find(keys_, key) != keys_.end()) return {};
    return Wrong(at, "config_schema has no property " + key + DidYouMean(key, keys_));
  }

  // Keys of the configuration that a value reads.
  Status CheckFrom(const json& value, const std::string& at) const {
    if (IsFrom(value)) {
      FUSEBOX_TRY(CheckKey(value["from"].get<std::string>(), at + "/from"));
      for (const auto& [key, member] : value.items()) {
        const std::string place = at + "/" + EscapePointer(key);
        if (key != "from" && key != "value" && key != "times" && key != "over")
          return Wrong(place, "beside \"from\", only value, times and over are allowed");
        if (key != "times" && key != "over") continue;
        if (member.is_string()) FUSEBOX_TRY(CheckKey(member.get<std::string>(), place));
        else if (!member.is_number_integer()) return Wrong(place, "expected an integer or a key");
      }
      return {};
    }
    if (!value.is_structured()) return {};
    for (const auto& [key, member] : value.items())
      FUSEBOX_TRY(CheckFrom(member, at + "/" + EscapePointer(key)));
    return {};
  }

  Status CheckConditions(const char* list) const {
    for (size_t i = 0; i < List(list).size(); ++i) {
      const json& one = List(list)[i];
      if (!one.contains("when")) continue;
      for (const auto& [key, schema] : one["when"].items()) {
        const std::string at = Place(list, i) + "/when/" + EscapePointer(key);
        FUSEBOX_TRY(CheckKey(key, at));
        FUSEBOX_TRY(CheckSchema(schema, at));
      }
    }
    return {};
  }

  static std::string Place(const char* list, size_t i) {
    return std::string("/") + list + "/" + std::to_string(i);
  }

  Status Define(const std::string& name, const std::string& at, bool conditional = false) {
    if (values_.insert(name).second || conditional) return {};
    return Wrong(at, "two values have the name " + name);
  }

  Status CheckWeights() {
    for (const json& name : entry_["inputs"]) values_.insert(name.get<std::string>());
    for (size_t i = 0; i < List("weights").size(); ++i) {
      const json& weight = List("weights")[i];
      const std::string at = Place("weights", i);
      FUSEBOX_TRY(Define(weight["name"].get<std::string>(), at + "/name"));
      for (size_t d = 0; d < weight["shape"].size(); ++d) {
        const json& dim = weight["shape"][d];
        const std::string place = at + "/shape/" + std::to_string(d);
        if (dim.is_string()) FUSEBOX_TRY(CheckKey(dim.get<std::string>(), place));
        else if (dim.is_object() && !IsFrom(dim)) return Wrong(place, "expected {\"from\": KEY}");
        else FUSEBOX_TRY(CheckFrom(dim, place));
      }
    }
    return {};
  }

  Status CheckConstants() {
    if (!entry_.contains("constants")) return {};
    for (const auto& [name, constant] : entry_["constants"].items()) {
      const std::string at = "/constants/" + EscapePointer(name);
      FUSEBOX_TRY(Define(name, at));
      const auto type = ParseType(constant["type"].get<std::string>());
      if (!type) return Wrong(at + "/type", type.error().message);
      if (type->shape.element_count().value_or(kMostElements + 1) > kMostElements)
        return Wrong(at + "/type", "constants have known dims and at most " + std::to_string(kMostElements) +
                                       " elements; use weights");
      FUSEBOX_TRY(CheckFrom(constant, at));
      if (constant.dump().find("\"from\"") != std::string::npos) continue;  // known in a conversion only
      if (const auto tensor = TensorFromJson(constant); !tensor) return Wrong(at, tensor.error().message);
    }
    return {};
  }

  Status CheckLayers() {
    for (size_t i = 0; i < List("layers").size(); ++i) {
      const json& layer = List("layers")[i];
      const auto name = layer["name"].get<std::string>();
      if (!layers_.insert(name).second && !layer.contains("when"))
        return Wrong(Place("layers", i) + "/name", "two layers have the name " + name);
      if (layer.contains("config")) FUSEBOX_TRY(CheckFrom(layer["config"], Place("layers", i) + "/config"));
    }
    return {};
  }

  Status CheckKnown(const json& name, const std::string& at) const {
    const auto text = name.get<std::string>();
    if (values_.contains(text)) return {};
    return Wrong(at,
                 "no value " + text + " before" + DidYouMean(text, Names(values_.begin(), values_.end())));
  }

  Status CheckInputs(const json& op, const std::string& at) const {
    for (size_t i = 0; i < op["inputs"].size(); ++i) {
      const json& input = op["inputs"][i];
      const std::string place = at + "/inputs/" + std::to_string(i);
      if (input.is_string()) {
        FUSEBOX_TRY(CheckKnown(input, place));
        continue;
      }
      if (op.contains("op")) return Wrong(place, "only layers have lists as arguments");
      for (const json& one : input) FUSEBOX_TRY(CheckKnown(one, place));
    }
    return {};
  }

  Status CheckOps() {
    if (!entry_.contains("outputs")) return Wrong("", "lacks the key \"outputs\", which \"ops\" needs");
    if (entry_.contains("results")) return Wrong("/results", "is for importers without ops");
    for (size_t i = 0; i < entry_["ops"].size(); ++i) {
      const json& op = entry_["ops"][i];
      const std::string at = Place("ops", i);
      FUSEBOX_TRY(CheckInputs(op, at));
      if (const char* other = op.contains("op") ? "arguments" : "attributes"; op.contains(other))
        return Wrong(at + "/" + other, op.contains("op") ? "is for layers; ops have attributes"
                                                         : "is for ops; layers have arguments");
      if (op.contains("layer") && !layers_.contains(op["layer"].get<std::string>()))
        return Wrong(at + "/layer", "no such layer" + DidYouMean(op["layer"].get<std::string>(),
                                                                 Names(layers_.begin(), layers_.end())));
      for (const char* key : {"attributes", "arguments"})
        if (op.contains(key)) FUSEBOX_TRY(CheckFrom(op[key], at + "/" + key));
      for (const json& name : op["results"])
        FUSEBOX_TRY(Define(name.get<std::string>(), at + "/results", op.contains("when")));
    }
    for (size_t i = 0; i < entry_["outputs"].size(); ++i)
      FUSEBOX_TRY(CheckKnown(entry_["outputs"][i], Place("outputs", i)));
    return {};
  }

  Status CheckRuleForm() const {
    if (!entry_.contains("composite") || !entry_.contains("results"))
      return Wrong("", "needs \"ops\" and \"outputs\", or \"composite\" and \"results\" for a rule");
    for (const char* key : {"layers", "constants", "outputs"})
      if (entry_.contains(key)) return Wrong(std::string("/") + key, "is for importers with ops");
    for (size_t i = 0; i < entry_["results"].size(); ++i)
      if (!ParseDType(entry_["results"][i].get<std::string>()))
        return Wrong(Place("results", i), "no type " + entry_["results"][i].dump());
    return {};
  }

  const Document& document_;
  const json& entry_;
  std::string at_;
  bool open_ = false;  // the configuration may have other keys
  Names keys_;         // of the configuration
  std::set<std::string> values_, layers_;
};

}  // namespace

Status CheckImporters(const Document& document, const json& list) {
  std::set<std::string> classes;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string at = "/provides/importers/" + std::to_string(i);
    for (const json& name : list[i]["classes"])
      if (!classes.insert(name.get<std::string>()).second)
        return document.Complain(at + "/classes", "\"" + name.get<std::string>() + "\" is duplicated");
    FUSEBOX_TRY(Checker(document, list[i], at).Check());
  }
  return {};
}

std::vector<Importer> ImportersOf(const Manifest& manifest) {
  std::vector<Importer> out;
  if (manifest.text.find("\"importers\"") == std::string::npos) return out;
  const json value = json::parse(manifest.text, nullptr, false);
  if (!value.is_object() || !value.contains("provides") || !value["provides"].contains("importers"))
    return out;
  for (const json& entry : value["provides"]["importers"])
    out.push_back({manifest.id, manifest.version, entry["classes"].get<Names>(), entry});
  return out;
}

Importers::Importers(const Registry& registry) : prefer_(registry.config().prefer) {
  for (const PluginInfo& info : registry.plugins()) {
    if (info.state == PluginInfo::State::kShadowed) continue;
    const bool usable = info.state == PluginInfo::State::kOk;
    for (Importer& importer : ImportersOf(info.manifest))
      listed_.push_back({std::move(importer), info.manifest.path,
                         usable ? "" : std::string(Name(info.state)) + ": " + info.why});
  }
}

Result<const Importer*> Importers::Find(const Names& names) const {
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

Names Importers::Unusable(const Names& names) const {
  Names out;
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

}  // namespace fusebox
