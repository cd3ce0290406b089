// SPDX-License-Identifier: Apache-2.0
// Layers of custom classes, built as the importer of a plugin describes them.
#include <algorithm>
#include <map>

#include "converter/import/keras/layer_call.h"
#include "host/fusion/fusion.h"
#include "host/plugin/tensor_json.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;
using ValueNames = std::vector<std::string>;

// {"type": "f32"} is a data type, {"shape": [2, 3]} a shape.
Result<Attrs> OpAttrs(const json& attributes) {
  auto attrs = AttrsFromJson(attributes);
  if (!attrs) return Invalid(attrs.error().pointer.substr(1) + ": " + attrs.error().what);
  Attrs out;
  for (const auto& [key, value] : *attrs) {
    const auto* map = std::get_if<std::shared_ptr<const Attrs>>(&value);
    if (!map) {
      out.Set(key, value);
    } else if ((*map)->size() == 1 && (*map)->Find("shape")) {
      out.Set(key, Shape((*map)->i64s("shape")));
    } else {
      const auto dtype = ParseDType((*map)->str("type", ""));
      if ((*map)->size() != 1 || !dtype)
        return Invalid(key + ": a map must be {\"type\": \"f32\"} or {\"shape\": [2, 3]}");
      out.Set(key, *dtype);
    }
  }
  return out;
}

// The configuration as attributes of a composite, without what attributes cannot hold.
Attrs CompositeAttrs(const json& config) {
  Attrs out;
  for (const auto& [key, value] : config.items()) {
    const auto one = AttrsFromJson({{key, value}});
    if (one && !value.is_object()) out.Set(key, *one->Find(key));
  }
  return out;
}

void CollectTensors(const Given& given, std::vector<Flow>& tensors, bool& plain) {
  if (const auto* flow = std::get_if<Flow>(&given.value)) tensors.push_back(*flow);
  if (const auto* list = std::get_if<std::vector<Given>>(&given.value))
    for (const Given& item : *list) CollectTensors(item, tensors, plain);
  if (const auto* value = std::get_if<json>(&given.value))
    plain = plain || !(value->is_null() || *value == false);
}

// The tensors that the layer is called with, in the order of the importer's inputs.
std::vector<Flow> InputsOf(LayerCall& c) {
  const auto names = c.layer().custom->entry["inputs"].get<ValueNames>();
  std::vector<Flow> flows;
  bool plain = false;
  if (!c.args().empty()) flows = c.inputs();
  for (size_t i = 1; i < c.args().size(); ++i) CollectTensors(c.args()[i], flows, plain);
  if (flows.empty()) flows = c.inputs();
  for (size_t i = 0; i < names.size(); ++i) {
    const Given* given = c.Keyword(names[i]);
    const auto* flow = given ? std::get_if<Flow>(&given->value) : nullptr;
    if (flow && i == flows.size()) flows.push_back(*flow);
  }
  for (const char* ignored : {"training", "mask"}) c.Keyword(ignored);
  if (plain || !c.UnreadKeyword().empty())
    c.emit().Refuse("it is called with the argument " + (plain ? "behind its inputs" : c.UnreadKeyword()) +
                    ", which the importer of " + c.layer().custom->plugin + " does not describe");
  else if (flows.size() != names.size())
    c.emit().Reject("it is called with " + std::to_string(flows.size()) + " tensors, but the importer of " +
                    c.layer().custom->plugin + " has " + std::to_string(names.size()) + " inputs");
  return flows;
}

// The ops of an importer in one function.
class ImportedBody {
 public:
  ImportedBody(LayerCall& call, Emitter& emit) : call_(call), e_(emit), custom_(*call.layer().custom) {}

  void Define(const std::string& name, Flow flow) { values_[name] = flow; }

  std::vector<Flow> Build() {
    for (const json& op : custom_.entry["ops"]) {
      if (!e_.ok()) return {};
      if (op.contains("op")) AddOp(op);
      else CallLayer(op);
    }
    std::vector<Flow> out;
    for (const json& name : custom_.entry["outputs"]) out.push_back(Find(name));
    return out;
  }

 private:
  Flow Find(const json& name) {
    const auto text = name.get<std::string>();
    if (const auto known = values_.find(text); known != values_.end()) return known->second;
    const json constants = custom_.entry.value("constants", json::object());
    if (!constants.contains(text)) {
      Wrong("no value " + text + " for this configuration: its \"when\" does not hold");
      return {};
    }
    const auto value = WithConfig(constants[text], custom_.config);
    const auto tensor = value ? TensorFromJson(*value) : std::unexpected(value.error());
    if (!tensor) {
      Wrong("constant " + text + ": " + tensor.error().message);
      return {};
    }
    return values_[text] = {e_.Const(*tensor, call_.layer().path + "/" + text)};
  }

  void AddOp(const json& op) {
    const auto name = op["op"].get<std::string>();
    if (!converter::FindTranslation(name)) return Wrong("op " + name + ": unsupported TensorFlow op");
    std::vector<ValueId> operands;
    for (const json& input : op["inputs"]) operands.push_back(Find(input).value);
    const auto attributes = WithConfig(op.value("attributes", json::object()), custom_.config);
    const auto attrs = attributes ? OpAttrs(*attributes) : std::unexpected(attributes.error());
    if (!attrs) return Wrong("op " + name + ": " + attrs.error().message);
    const std::vector<ValueId> results = e_.Ops(name, operands, *attrs, op["results"].size());
    for (size_t i = 0; i < results.size(); ++i) Define(op["results"][i], {results[i]});
  }

  void CallLayer(const json& op) {
    const auto name = op["layer"].get<std::string>();
    const json& held = custom_.entry["layers"];
    const auto at =
        std::find_if(held.begin(), held.end(), [&](const json& one) { return one["name"] == name; });
    if (at == held.end()) return Wrong("no layer " + name + " for this configuration");
    const auto arguments = WithConfig(op.value("arguments", json::object()), custom_.config);
    if (!arguments) return Wrong("layer " + name + ": " + arguments.error().message);
    std::vector<Given> args;
    for (const json& input : op["inputs"]) {
      std::vector<Given> list;
      if (input.is_array())
        for (const json& one : input) list.push_back({Find(one)});
      args.push_back(input.is_array() ? Given{std::move(list)} : Given{Find(input)});
    }
    std::map<std::string, Given> kwargs;
    for (const auto& [key, value] : arguments->items()) kwargs.emplace(key, Given{value});
    const Layer& layer = *call_.layer().wrapped[static_cast<size_t>(at - held.begin())];
    const std::vector<Flow> results =
        BuildLayer(call_.state(), e_, layer, std::move(args), std::move(kwargs));
    if (!e_.ok()) return;
    if (results.size() < op["results"].size())
      return Wrong("layer " + name + " has " + std::to_string(results.size()) + " results");
    for (size_t i = 0; i < op["results"].size(); ++i) Define(op["results"][i], results[i]);
  }

  void Wrong(const std::string& what) { e_.Reject("importer of " + custom_.plugin + ": " + what); }

  LayerCall& call_;
  Emitter& e_;
  const CustomLayer& custom_;
  std::map<std::string, Flow> values_;
};

// ValueNames of the operands: inputs, then weights.
ValueNames OperandNames(const CustomLayer& custom) {
  auto names = custom.entry["inputs"].get<ValueNames>();
  for (const WeightSpec& weight : custom.weights) names.push_back(weight.name);
  return names;
}

std::vector<Flow> InlineOps(LayerCall& c, const std::vector<Flow>& operands) {
  ImportedBody body(c, c.emit());
  const ValueNames names = OperandNames(*c.layer().custom);
  for (size_t i = 0; i < names.size(); ++i) body.Define(names[i], operands[i]);
  return body.Build();
}

// A composite whose body holds the ops.
std::vector<Flow> AsComposite(LayerCall& c, const std::vector<Flow>& operands) {
  const CustomLayer& custom = *c.layer().custom;
  const auto name = custom.entry["composite"].get<std::string>();
  Function& function = c.state().module.Add(c.layer().path + "/" + name);
  Emitter emit(c.state().module, function, c.state().registry, c.state().status, c.layer().path);
  ImportedBody body(c, emit);
  const ValueNames names = OperandNames(custom);
  std::vector<ValueId> values;
  for (size_t i = 0; i < names.size(); ++i) {
    values.push_back(operands[i].value);
    body.Define(names[i], {function.AddInput(c.emit().type(operands[i].value), names[i])});
  }
  std::vector<Type> types;
  for (const Flow& result : body.Build()) {
    function.outputs.push_back(result.value);
    types.push_back(emit.type(result.value));
  }
  std::vector<Flow> out;
  for (const ValueId v : c.emit().Node(Op::kStablehloComposite, name, std::move(values), std::move(types),
                                       CompositeAttrs(custom.config), function.name))
    out.push_back({v});
  return out;
}

// A module that holds the layer as a composite without body. Operands that are no constants are its inputs.
std::unique_ptr<Module> Bodyless(LayerCall& c, const std::vector<Flow>& operands,
                                 std::vector<ValueId>& passed) {
  const CustomLayer& custom = *c.layer().custom;
  auto module = std::make_unique<Module>();
  module->source = c.state().module.source;
  Function& f = module->Add("layer");
  std::vector<ValueId> own;
  for (const Flow& operand : operands) {
    const Value& value = c.emit().function().value(operand.value);
    own.push_back(value.is_const() ? f.AddConst(value.type, value.data, value.name) : f.AddInput(value.type));
    if (!value.is_const()) passed.push_back(operand.value);
  }
  std::vector<Type> types;
  for (const json& dtype : custom.entry["results"])
    types.push_back({*ParseDType(dtype.get<std::string>()), {}});
  Node& node = f.AddNode(Op::kStablehloComposite, own, types, CompositeAttrs(custom.config));
  node.name = custom.entry["composite"];
  node.version = 1;
  node.location = {c.layer().path, c.layer().path};
  f.outputs = node.results;
  return module;
}

// The ops of the rule that rewrites the composite. It has no body to run, so a rule must.
std::vector<Flow> ThroughRule(LayerCall& c, const std::vector<Flow>& operands) {
  std::vector<ValueId> passed;
  const auto module = Bodyless(c, operands, passed);
  const std::string name = c.layer().custom->entry["composite"];
  const auto sites = Fuse(*module, c.state().registry, {.kernels_elsewhere = true, .for_file = true});
  if (!sites) {
    c.emit().Fail(sites.error());
    return {};
  }
  if (!sites->front().fused) {
    c.emit().Refuse("no rule builds it: composite " + name + ": " + sites->front().why);
    return {};
  }
  const Function& f = *module->functions[0];
  std::vector<Type> types;
  for (const ValueId v : f.outputs) {
    if (!Uses(f).producer(v)) {
      c.emit().Refuse("the rule for " + name + " returns an operand or a constant");
      return {};
    }
    types.push_back(f.value(v).type);
  }
  std::vector<Flow> out;
  for (const ValueId v : c.emit().Node(Op::kStablehloComposite, name, passed, std::move(types), {}))
    out.push_back({v});
  InlineAt(c.emit().function(), c.emit().function().nodes.size() - 1, f);
  return out;
}

}  // namespace

void BuildCustom(LayerCall& c) {
  const CustomLayer& custom = *c.layer().custom;
  std::vector<Flow> operands = InputsOf(c);
  if (!c.emit().ok()) return;
  const auto mask = std::ranges::find_if(operands, [](const Flow& flow) { return flow.mask != kNoValue; });
  const bool masked = mask != operands.end();
  if (masked && !custom.entry.contains("mask"))
    return c.emit().Refuse("an input of it has a mask, and the importer of " + custom.plugin +
                           " does not state what becomes of it; set \"mask\" to \"pass\" or \"stop\" there");
  const ValueId passed = masked && custom.entry["mask"] == "pass" ? mask->mask : kNoValue;
  for (size_t i = 0; i < custom.weights.size(); ++i)
    operands.push_back({c.Weight(custom.weights[i].name, custom.shapes[i])});
  if (!c.emit().ok()) return;
  // The operands of a composite have no masks.
  const bool composite = custom.entry.contains("composite") && !(masked && custom.entry.contains("layers"));
  const auto results = !custom.entry.contains("ops") ? ThroughRule(c, operands)
                       : composite                   ? AsComposite(c, operands)
                                                     : InlineOps(c, operands);
  for (const Flow& result : results) c.AddOutput(result.value, passed);
  const std::string note =
      "layer " + c.layer().path + " (" + c.layer().class_name + "): imported by " + custom.plugin;
  if (auto& notes = c.state().notes; std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
}

}  // namespace fusebox::keras
