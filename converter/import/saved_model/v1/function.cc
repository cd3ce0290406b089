// SPDX-License-Identifier: Apache-2.0
// A part of a graph as a function of the model's library.
#include <algorithm>

#include "converter/import/saved_model/v1/graph.h"

namespace fusebox::saved_model::v1 {
namespace {

constexpr size_t kMostCopied = size_t{1} << 20;

// Constants, and variables that nobody writes, are copied into the functions that read them, so that weights,
// axes and shapes stay constant there.
bool IsCopied(const Graph& g, Port port, bool writes) {
  const int n = Origin(g, port).node;
  if (g.Is(n, "Const")) return true;
  if (!g.Is(n, "VariableV2") && !g.Is(n, "Variable") && !g.Is(n, "VarHandleOp")) return false;
  return !writes;
}

class Extractor {
 public:
  Extractor(Context& context, const Graph& from, const Outside& outside, Arguments& arguments)
      : context_(context),
        from_(from),
        outside_(outside),
        arguments_(arguments),
        writes_(std::ranges::any_of(from.nodes, &Vertex::effect)) {}

  Result<Graph> Run(const std::vector<Port>& results, const std::vector<int>& effects) {
    for (const Port& result : results) {
      FUSEBOX_ASSIGN(const Port here, Import(result));
      out_.results.push_back(here);
    }
    for (const int effect : effects) out_.effects.push_back(Copy(effect));
    while (!pending_.empty()) {
      const auto [there, here] = pending_.back();
      pending_.pop_back();
      FUSEBOX_TRY(ImportInputs(there, here));
    }
    return std::move(out_);
  }

 private:
  Status ImportInputs(int there, int here) {
    if (++context_.copied > kMostCopied)
      return Unsupported("its loops and branches share more than " + std::to_string(kMostCopied) + " nodes");
    for (const Port& input : from_[there].inputs) {
      FUSEBOX_ASSIGN(const Port made, Import(input));
      out_[here].inputs.push_back(made);
    }
    for (const int control : from_[there].controls) {
      FUSEBOX_ASSIGN(const auto key, outside_({control, 0}));
      if (!key) {
        const int made = Copy(control);
        out_[here].controls.push_back(made);
      }
    }
    return {};
  }

  Result<Port> Import(Port port) {
    FUSEBOX_ASSIGN(const auto key, outside_(port));
    if (!key) return Port{Copy(port.node), port.output};
    const auto known = arguments_.numbers.find(*key);
    const Port value =
        known == arguments_.numbers.end() ? *key : arguments_.values[static_cast<size_t>(known->second)];
    const bool variable = known != arguments_.numbers.end() && value != *key;
    if (!variable && IsCopied(from_, value, writes_)) return Port{Copy(Origin(from_, value).node), 0};
    const int number = arguments_.Of(*key, value);
    const auto [it, fresh] = argument_nodes_.emplace(number, static_cast<int>(out_.nodes.size()));
    if (fresh)
      out_.nodes.push_back({.def = nullptr, .kind = Kind::kOther, .argument = number, .effect = false});
    return Port{it->second, 0};
  }

  int Copy(int there) {
    const auto [it, fresh] = copies_.emplace(there, static_cast<int>(out_.nodes.size()));
    if (!fresh) return it->second;
    Vertex copy = from_[there];
    copy.inputs.clear();
    copy.controls.clear();
    out_.nodes.push_back(std::move(copy));
    pending_.emplace_back(there, it->second);
    return it->second;
  }

  Context& context_;
  const Graph& from_;
  const Outside& outside_;
  Arguments& arguments_;
  const bool writes_;  // any state
  Graph out_;
  std::map<int, int> copies_, argument_nodes_;
  std::vector<std::pair<int, int>> pending_;
};

// A prefix that no node's name has.
std::string ArgumentPrefix(const Graph& g) {
  std::string prefix = "argument_";
  for (bool free = false; !free;) {
    free = true;
    for (const Vertex& node : g.nodes) free = free && !(node.def && node.def->name().starts_with(prefix));
    if (!free) prefix += "_";
  }
  return prefix;
}

}  // namespace

int Arguments::Of(Port inside, Port value) {
  const auto [it, fresh] = numbers.emplace(inside, static_cast<int>(values.size()));
  if (fresh) values.push_back(value);
  return it->second;
}

Result<Graph> Extract(Context& context, const Graph& from, const std::vector<Port>& results,
                      const std::vector<int>& effects, const Outside& outside, Arguments& arguments) {
  return Extractor(context, from, outside, arguments).Run(results, effects);
}

Result<std::string> AddFunction(Context& context, Graph part, const std::vector<DType>& arguments,
                                const std::string& name) {
  constexpr int kMostDepth = 64;
  if (context.depth >= kMostDepth)
    return Unsupported("more than " + std::to_string(kMostDepth) + " loops and branches in each other");
  const std::string prefix = ArgumentPrefix(part);
  part.arguments = arguments;
  for (size_t i = 0; i < arguments.size(); ++i) part.labels.push_back(prefix + std::to_string(i));
  ++context.depth;
  const Status rebuilt = RebuildGraph(context, part);
  --context.depth;
  FUSEBOX_TRY(rebuilt);
  tf::FunctionDef def;
  def.mutable_signature()->set_name(name);
  for (int k = 1; context.model.FindFunction(def.signature().name()); ++k)
    def.mutable_signature()->set_name(name + "_" + std::to_string(k));
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& arg = *def.mutable_signature()->add_input_arg();
    arg.set_name(part.labels[i]);
    arg.set_type(ToDataType(arguments[i]));
  }
  for (size_t i = 0; i < part.results.size(); ++i) {
    auto& arg = *def.mutable_signature()->add_output_arg();
    arg.set_name("result_" + std::to_string(i));
    arg.set_type(ToDataType(context.TypeOf(part, part.results[i])));
    (*def.mutable_ret())[arg.name()] = part.Text(part.results[i]);
  }
  for (const tf::NodeDef* node : Store(context, part)) *def.add_node_def() = *node;
  for (const int effect : part.effects)
    (*def.mutable_control_ret())[part.NameOf(effect)] = part.NameOf(effect);
  return context.model.Add(std::move(def));
}

}  // namespace fusebox::saved_model::v1
