// SPDX-License-Identifier: Apache-2.0
#include "host/plugin/importers.h"

#include <algorithm>
#include <set>

#include "host/base/json.h"
#include "host/plugin/tensor_json.h"

namespace fusebox {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

const json kNone = json::array();
constexpr int64_t kMostElements = int64_t{1} << 20;  // of a constant

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

bool IsFrom(const json& value) {
  return value.is_object() && value.contains("from") && value["from"].is_string();
}

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

}  // namespace fusebox
