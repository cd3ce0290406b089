// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/v1/graph.h"

#include <algorithm>

namespace fusebox::saved_model::v1 {

Kind KindOf(const std::string& op) {
  const std::string_view plain = std::string_view(op).substr(op.starts_with("Ref") ? 3 : 0);
  if (plain == "Switch") return Kind::kSwitch;
  if (plain == "Merge") return Kind::kMerge;
  if (plain == "Enter") return Kind::kEnter;
  if (plain == "Exit") return Kind::kExit;
  if (plain == "NextIteration") return Kind::kNextIteration;
  return plain == "LoopCond" ? Kind::kLoopCond : Kind::kOther;
}

std::string Graph::NameOf(int node) const {
  const Vertex& at = (*this)[node];
  return at.def ? at.def->name() : labels[static_cast<size_t>(at.argument)];
}

std::string Graph::Text(Port port) const {
  return NameOf(port.node) + (port.output > 0 ? ":" + std::to_string(port.output) : "");
}

int Graph::Add(const tf::NodeDef& def, std::vector<Port> inputs) {
  nodes.push_back(
      {.def = &def, .kind = KindOf(def.op()), .argument = -1, .inputs = std::move(inputs), .effect = false});
  return static_cast<int>(nodes.size()) - 1;
}

Port Origin(const Graph& g, Port port) {
  for (size_t hop = 0; hop < g.nodes.size(); ++hop) {
    if (!g.Is(port.node, "Identity") || g[port.node].inputs.size() != 1) break;
    port = g[port.node].inputs[0];
  }
  return port;
}

const tf::Tensor* ConstantOf(const Graph& g, Port port) {
  port = Origin(g, port);
  if (!g.Is(port.node, "Const")) return nullptr;
  const auto it = g[port.node].def->attr().find("value");
  return it == g[port.node].def->attr().end() ? nullptr : &it->second.tensor();
}

Result<std::vector<int>> Order(const Graph& g) {
  std::vector<int> waiting(g.nodes.size(), 0);
  std::vector<int> out;
  std::vector<std::vector<int>> readers(g.nodes.size());
  for (int n = 0; n < static_cast<int>(g.nodes.size()); ++n) {
    const auto after = [&](int producer) {
      if (g[n].kind == Kind::kMerge && g[producer].kind == Kind::kNextIteration) return;
      readers[static_cast<size_t>(producer)].push_back(n);
      ++waiting[static_cast<size_t>(n)];
    };
    for (const Port& input : g[n].inputs) after(input.node);
    for (const int control : g[n].controls) after(control);
    if (waiting[static_cast<size_t>(n)] == 0) out.push_back(n);
  }
  for (size_t i = 0; i < out.size(); ++i)
    for (const int reader : readers[static_cast<size_t>(out[i])])
      if (--waiting[static_cast<size_t>(reader)] == 0) out.push_back(reader);
  if (out.size() < g.nodes.size()) return Invalid("its nodes form a cycle");
  return out;
}

void Replace(Graph& g, const std::map<Port, Port>& by) {
  const auto replace = [&](Port& port) {
    // A replacement may itself be replaced. Each step leads to another node, so this ends.
    for (size_t hop = 0; hop <= by.size(); ++hop) {
      const auto it = by.find(port);
      if (it == by.end()) return;
      port = it->second;
    }
  };
  for (Vertex& node : g.nodes) std::ranges::for_each(node.inputs, replace);
  std::ranges::for_each(g.results, replace);
}

void Redirect(Graph& g, const std::map<int, int>& by) {
  const auto redirect = [&](int& node) {
    if (const auto it = by.find(node); it != by.end()) node = it->second;
  };
  for (int n = 0; n < static_cast<int>(g.nodes.size()); ++n) {
    std::ranges::for_each(g[n].controls, redirect);
    std::erase(g[n].controls, n);
  }
  std::ranges::for_each(g.effects, redirect);
}

void Prune(Graph& g, bool states) {
  std::vector<int> pending = g.effects;
  std::vector<int> number(g.nodes.size(), -1);
  for (const Port& result : g.results) pending.push_back(result.node);
  while (!pending.empty()) {
    const int n = pending.back();
    pending.pop_back();
    if (std::exchange(number[static_cast<size_t>(n)], 0) == 0) continue;
    for (const Port& input : g[n].inputs) pending.push_back(input.node);
    for (const int control : g[n].controls)
      if (states || g[control].effect) pending.push_back(control);
  }
  std::vector<Vertex> kept;
  for (size_t n = 0; n < number.size(); ++n) {
    if (number[n] < 0) continue;
    number[n] = static_cast<int>(kept.size());
    kept.push_back(std::move(g.nodes[n]));
  }
  g.nodes = std::move(kept);
  const auto renumber = [&](Port& port) { port.node = number[static_cast<size_t>(port.node)]; };
  for (Vertex& node : g.nodes) {
    std::ranges::for_each(node.inputs, renumber);
    for (int& control : node.controls) control = number[static_cast<size_t>(control)];
    std::erase(node.controls, -1);
  }
  std::ranges::for_each(g.results, renumber);
  for (int& effect : g.effects) effect = number[static_cast<size_t>(effect)];
}

tf::NodeDef& Context::Make(const std::string& op, const std::string& name) {
  std::string unique = name;
  for (int k = 1; !names.insert(unique).second; ++k) unique = name + "_" + std::to_string(k);
  tf::NodeDef& def = made.emplace_back();
  def.set_op(op);
  def.set_name(unique);
  return def;
}

const tf::NodeDef& MakeIndex(Context& context, const std::string& name, int value) {
  tf::NodeDef& made = context.Make("Const", name + "/index");
  (*made.mutable_attr())["dtype"].set_type(tf::DT_INT32);
  tf::Tensor& tensor = *(*made.mutable_attr())["value"].mutable_tensor();
  tensor.set_dtype(tf::DT_INT32);
  tensor.mutable_tensor_shape();
  tensor.add_int_val(value);
  return made;
}

DType Context::TypeOf(const Graph& g, Port port) const {
  const Vertex& node = g[port.node];
  if (!node.def) return g.arguments[static_cast<size_t>(node.argument)];
  if (const tf::Tensor* tensor = g.Is(port.node, "Const") ? ConstantOf(g, port) : nullptr)
    return ToDType(tensor->dtype());
  const auto outputs = OutputsOf(model, *node.def);
  const auto output = static_cast<size_t>(port.output);
  return outputs && output < outputs->dtypes.size() ? outputs->dtypes[output] : DType::kNone;
}

tf::DataType ToDataType(DType dtype) {
  for (int t = tf::DT_FLOAT; t <= tf::DT_UINT64; ++t)
    if (ToDType(static_cast<tf::DataType>(t)) == dtype) return static_cast<tf::DataType>(t);
  return tf::DT_INVALID;
}

std::vector<const tf::NodeDef*> Store(Context& context, const Graph& g) {
  std::vector<const tf::NodeDef*> out;
  for (const Vertex& node : g.nodes) {
    if (!node.def) continue;
    std::vector<std::string> inputs;
    for (const Port& input : node.inputs) inputs.push_back(g.Text(input));
    for (const int control : node.controls)
      if (g[control].effect && g[control].def) inputs.push_back("^" + g.NameOf(control));
    const tf::NodeDef* def = node.def;
    if (!std::ranges::equal(inputs, def->input())) {
      tf::NodeDef& changed = context.made.emplace_back(*def);
      changed.clear_input();
      for (const std::string& input : inputs) changed.add_input(input);
      def = &changed;
    }
    out.push_back(def);
  }
  return out;
}

}  // namespace fusebox::saved_model::v1
