// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/v1/rebuild.h"

#include <algorithm>

#include "converter/import/saved_model/v1/graph.h"

namespace fusebox::saved_model::v1 {
namespace {

bool IsOld(const tf::NodeDef& node) {
  return KindOf(node.op()) != Kind::kOther || node.op().starts_with("TensorArray");
}

bool WritesState(const std::string& op) {
  constexpr std::string_view kPrefixes[] = {"Assign",
                                            "ResourceScatter",
                                            "StatefulPartitionedCall",
                                            "LookupTableInsert",
                                            "LookupTableImport",
                                            "InitializeTable"};
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return op.starts_with(prefix); });
}

// Reads the nodes that results need.
class Loader {
 public:
  Loader(const SavedModel& model, bool in_function) : model_(model), in_function_(in_function) {}

  void AddNode(const tf::NodeDef& node) { defs_.emplace(node.name(), &node); }
  void AddArgument(const std::string& name, int output, DType dtype) {
    const auto number = static_cast<int>(g_.arguments.size());
    arguments_[{name, output}] = static_cast<int>(g_.nodes.size());
    g_.nodes.push_back({.def = nullptr, .kind = Kind::kOther, .argument = number, .effect = false});
    g_.arguments.push_back(dtype);
    g_.labels.push_back(name + (output > 0 ? ":" + std::to_string(output) : ""));
  }

  Result<Graph> Load(const std::vector<std::string>& results, const std::vector<std::string>& effects) {
    for (const std::string& result : results) {
      FUSEBOX_ASSIGN(const Edge edge, ParseEdge(result, in_function_));
      FUSEBOX_ASSIGN(const Port port, PortOf(edge));
      g_.results.push_back(port);
    }
    for (const std::string& effect : effects)
      if (const auto node = NodeOf(effect)) g_.effects.push_back(*node);
    while (!pending_.empty()) {
      const int n = pending_.back();
      pending_.pop_back();
      FUSEBOX_TRY(LoadInputs(n).At([&] { return "node " + g_.NameOf(n) + " (" + g_[n].def->op() + ")"; }));
    }
    SpreadEffects();
    return std::move(g_);
  }

 private:
  Status LoadInputs(int n) {
    for (const std::string& input : g_[n].def->input()) {
      FUSEBOX_ASSIGN(const Edge edge, ParseEdge(input, in_function_));
      if (edge.control) {
        if (const auto node = NodeOf(edge.node)) g_[n].controls.push_back(*node);
        continue;
      }
      FUSEBOX_ASSIGN(const Port port, PortOf(edge));
      g_[n].inputs.push_back(port);
    }
    return {};
  }

  // Returns nullopt for an argument, or if there is no node of that name.
  std::optional<int> NodeOf(const std::string& name) {
    const auto def = defs_.find(name);
    const auto argument = arguments_.lower_bound({name, 0});
    if (def == defs_.end() || (argument != arguments_.end() && argument->first.first == name))
      return std::nullopt;
    return Number(*def->second);
  }

  int Number(const tf::NodeDef& def) {
    const auto [it, fresh] = numbers_.emplace(&def, static_cast<int>(g_.nodes.size()));
    if (fresh) {
      g_.Add(def, {});
      pending_.push_back(it->second);
    }
    return it->second;
  }

  Result<Port> PortOf(const Edge& edge) {
    const auto argument = arguments_.find({edge.node, edge.index});
    if (argument != arguments_.end() && edge.output.empty()) return Port{argument->second, 0};
    const auto def = defs_.find(edge.node);
    if (def == defs_.end()) return Invalid("refers to " + edge.node + ", which does not exist");
    constexpr int kMostOutputs = 1 << 20;
    int output = edge.index;
    if (output > kMostOutputs)
      return Invalid("refers to output " + std::to_string(output) + " of " + edge.node);
    if (!edge.output.empty()) {
      FUSEBOX_ASSIGN(const NodeOutputs outputs, OutputsOf(model_, *def->second));
      const auto first = outputs.first.find(edge.output);
      if (first != outputs.first.end()) output += first->second;
    }
    return Port{Number(*def->second), output};
  }

  void SpreadEffects() {
    std::vector<std::vector<int>> readers(g_.nodes.size());
    std::vector<int> pending;
    for (int n = 0; n < static_cast<int>(g_.nodes.size()); ++n) {
      for (const Port& input : g_[n].inputs) readers[static_cast<size_t>(input.node)].push_back(n);
      for (const int control : g_[n].controls) readers[static_cast<size_t>(control)].push_back(n);
      if (g_[n].def && WritesState(g_[n].def->op())) pending.push_back(n);
    }
    while (!pending.empty()) {
      const int n = pending.back();
      pending.pop_back();
      if (std::exchange(g_[n].effect, true)) continue;
      for (const int reader : readers[static_cast<size_t>(n)]) pending.push_back(reader);
    }
  }

  const SavedModel& model_;
  bool in_function_;
  Graph g_;
  std::map<std::string_view, const tf::NodeDef*> defs_;
  std::map<std::pair<std::string, int>, int> arguments_;
  std::map<const tf::NodeDef*, int> numbers_;
  std::vector<int> pending_;
};

bool HasOld(const Graph& g) {
  return std::ranges::any_of(g.nodes, [](const Vertex& node) { return node.def && IsOld(*node.def); });
}

Status Rebuild(Context& context, Graph& g) {
  for (const Vertex& node : g.nodes)
    if (node.def) context.names.insert(node.def->name());
  FUSEBOX_TRY(LowerArrays(context, g));
  return RebuildGraph(context, g);
}

}  // namespace

Status RebuildGraph(Context& context, Graph& g) {
  FUSEBOX_TRY(CutDeadBranches(context, g));
  FUSEBOX_TRY(ExtractLoops(context, g));
  FUSEBOX_TRY(ExtractBranches(context, g));
  Prune(g, false);
  return {};
}

Result<Rebuilt> RebuildMain(SavedModel& model, const std::vector<Feed>& feeds,
                            const std::vector<std::string>& results) {
  Rebuilt out;
  out.results = results;
  for (const tf::NodeDef& node : model.graph().node()) out.nodes.push_back(&node);
  if (std::ranges::none_of(model.graph().node(), IsOld)) return out;
  Loader loader(model, false);
  for (const tf::NodeDef& node : model.graph().node()) loader.AddNode(node);
  for (const Feed& feed : feeds) loader.AddArgument(feed.edge.node, feed.edge.index, feed.dtype);
  FUSEBOX_ASSIGN(Graph g, loader.Load(results, {}));
  if (!HasOld(g)) return out;
  Context context{model};
  FUSEBOX_TRY(Rebuild(context, g));
  out.nodes = Store(context, g);
  for (size_t i = 0; i < results.size(); ++i) out.results[i] = g.Text(g.results[i]);
  out.made = std::move(context.made);
  return out;
}

Result<const tf::FunctionDef*> RebuildFunction(SavedModel& model, const tf::FunctionDef& def) {
  if (std::ranges::none_of(def.node_def(), IsOld)) return &def;
  Loader loader(model, true);
  for (const tf::NodeDef& node : def.node_def()) loader.AddNode(node);
  for (const auto& arg : def.signature().input_arg()) loader.AddArgument(arg.name(), 0, ToDType(arg.type()));
  std::vector<std::string> names;
  std::vector<std::string> results;
  std::vector<std::string> effects;
  for (const auto& [name, edge] : def.ret()) {
    names.push_back(name);
    results.push_back(edge);
  }
  for (const auto& [name, node] : def.control_ret()) effects.push_back(node);
  FUSEBOX_ASSIGN(Graph g, loader.Load(results, effects));
  if (!HasOld(g)) return &def;
  Context context{model};
  FUSEBOX_TRY(Rebuild(context, g));
  tf::FunctionDef made = def;
  made.clear_node_def();
  for (const tf::NodeDef* node : Store(context, g)) *made.add_node_def() = *node;
  for (size_t i = 0; i < names.size(); ++i) (*made.mutable_ret())[names[i]] = g.Text(g.results[i]);
  made.clear_control_ret();
  for (const int effect : g.effects) (*made.mutable_control_ret())[g.NameOf(effect)] = g.NameOf(effect);
  return &model.Own(std::move(made));
}

}  // namespace fusebox::saved_model::v1
