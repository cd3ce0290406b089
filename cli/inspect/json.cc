// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "cli/inspect/inspect.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ToJson {
  Json operator()(std::monostate) const { return {}; }
  Json operator()(bool v) const { return v; }
  Json operator()(int64_t v) const { return v; }
  Json operator()(double v) const { return v; }
  Json operator()(const std::string& v) const { return v; }
  Json operator()(const std::vector<int64_t>& v) const { return v; }
  Json operator()(const std::vector<double>& v) const { return v; }
  Json operator()(const std::vector<std::string>& v) const { return v; }
  Json operator()(DType v) const { return Name(v); }
  Json operator()(const Shape& v) const { return ToString(v); }
  Json operator()(const Tensor& v) const { return ToString(v.type); }
  Json operator()(const FunctionRef& v) const { return v.name; }
  Json operator()(const std::shared_ptr<const Attrs>& v) const {
    Json object = Json::object();
    if (!v) return object;
    for (const auto& [name, value] : *v) object[name] = std::visit(*this, value);
    return object;
  }
};

Json JsonOf(const Attrs& attrs) {
  Json object = Json::object();
  for (const auto& [name, value] : attrs) object[name] = std::visit(ToJson(), value);
  return object;
}

Json JsonOf(const Function& function, ValueId id) {
  if (id == kNoValue) return {};
  const Value& value = function.value(id);
  Json shape;
  if (value.type.shape.ranked()) shape = value.type.shape.dims();
  return {{"id", id},
          {"name", value.name},
          {"dtype", Name(value.type.dtype)},
          {"shape", std::move(shape)},
          {"constant", value.is_const()},
          {"variable", value.is_variable},
          {"quantized", value.quant != nullptr}};
}

Json JsonOf(const Function& function, std::span<const ValueId> ids) {
  Json list = Json::array();
  for (const ValueId id : ids) list.push_back(JsonOf(function, id));
  return list;
}

Json JsonOf(const Function& function, const Node& node) {
  Json out = {{"op", OpName(node)},
              {"version", node.version},
              {"options", JsonOf(node.attrs)},
              {"inputs", JsonOf(function, node.operands)},
              {"outputs", JsonOf(function, node.results)}};
  if (node.is(Op::kStablehloComposite)) out["name"] = node.name;
  if (!node.body.empty()) out["body"] = node.body;
  if (!node.fused) return out;
  out["fused"] = {{"plugin", node.fused->plugin},
                  {"version", node.fused->plugin_version},
                  {"rule", node.fused->rule},
                  {"composite", node.fused->composite}};
  for (const ReplacedNode& replaced : node.fused->replaces)
    out["fused"]["replaces"].push_back({{"op", replaced.op}, {"name", replaced.name}});
  return out;
}

Json JsonOf(const Function& function) {
  Json nodes = Json::array();
  for (const auto& node : function.nodes) nodes.push_back(JsonOf(function, *node));
  return {{"name", function.name},
          {"inputs", JsonOf(function, function.inputs)},
          {"outputs", JsonOf(function, function.outputs)},
          {"constant_bytes", ConstantBytes(function)},
          {"nodes", std::move(nodes)}};
}

// `entries` begins with the signatures, in order.
Json JsonOf(const Module& module, const std::vector<Model::Entry>& entries) {
  Json list = Json::array();
  for (size_t i = 0; i < module.signatures.size(); ++i) {
    const Signature& s = module.signatures[i];
    const Status& status = entries[i].status;
    list.push_back({{"key", s.key},
                    {"subgraph", s.function},
                    {"inputs", s.input_names},
                    {"outputs", s.output_names},
                    {"can_run", status.has_value()}});
    if (!status) list.back()["reason"] = status.error().message;
  }
  return list;
}

}  // namespace

Json InspectJson(const Module& module, const std::vector<Model::Entry>& entries) {
  Json subgraphs = Json::array();
  Json metadata = Json::array();
  for (const auto& function : module.functions) subgraphs.push_back(JsonOf(*function));
  for (const Metadata& m : module.metadata) metadata.push_back({{"name", m.name}, {"bytes", m.data.size()}});
  Json out = {{"file", module.source},
              {"description", module.description},
              {"signatures", JsonOf(module, entries)},
              {"subgraphs", std::move(subgraphs)},
              {"ops", CountOps(module)},
              {"metadata", std::move(metadata)},
              {"appended_bytes", module.appended.size()}};
  if (entries.size() > module.signatures.size() && !entries.back().status)
    out["main_reason"] = entries.back().status.error().message;
  return out;
}

}  // namespace fusebox::cli
