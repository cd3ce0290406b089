// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "cli/page/page.h"
#include "host/base/table.h"

namespace fusebox::cli::page {
namespace {

constexpr size_t kMostLabel = 80;

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : Printable(text.substr(0, kMostLabel))) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + (text.size() > kMostLabel ? "...\"" : "\"");
}

std::string LabelOf(const Function& function, const Node& node) {
  std::string label =
      node.is(Op::kCustom) || node.is(Op::kStablehloComposite) ? node.name : std::string(Name(node.op));
  std::string text = Quoted(label);
  text.pop_back();
  for (const ValueId id : node.results)
    if (id != kNoValue) return text + "\\n" + ToString(function.value(id).type) + "\"";
  return text + "\"";
}

// The statements of one function. Nodes are "f0_n3", inputs and constants that are outputs "f0_v5", outputs
// "f0_o0".
class Cluster {
 public:
  Cluster(const Module& module, size_t number)
      : module_(module), function_(*module.functions[number]), number_(number) {}

  std::string Text() {
    out_ = fmt::format("  subgraph cluster_{} {{\n    label={};\n    f{}_a [shape=point, style=invis];\n",
                       number_, Quoted(function_.name), number_);
    for (const ValueId id : function_.inputs) Define(id);
    for (const ValueId id : function_.outputs)
      if (function_.value(id).is_const()) Define(id);
    for (size_t i = 0; i < function_.nodes.size(); ++i) Add(i);
    for (size_t i = 0; i < function_.outputs.size(); ++i) AddOutput(i);
    return out_ + "  }\n" + references_;
  }

 private:
  void Define(ValueId id) {
    const std::string name = fmt::format("f{}_v{}", number_, id);
    if (!sources_.emplace(id, name).second) return;
    out_ += fmt::format("    {} [shape=ellipse, label={}];\n", name, Quoted(function_.value(id).name));
  }

  void Read(ValueId id, const std::string& reader) {
    if (const auto found = sources_.find(id); found != sources_.end())
      out_ += fmt::format("    {} -> {};\n", found->second, reader);
  }

  void Add(size_t index) {
    const Node& node = *function_.nodes[index];
    const std::string name = fmt::format("f{}_n{}", number_, index);
    out_ += fmt::format("    {} [label={}];\n", name, LabelOf(function_, node));
    for (const ValueId id : node.operands) Read(id, name);
    for (const ValueId id : node.results) sources_[id] = name;
    for (const std::string& callee : References(node))
      for (size_t f = 0; f < module_.functions.size(); ++f)
        if (module_.functions[f]->name == callee)
          references_ += fmt::format("  {} -> f{}_a [style=dashed, lhead=cluster_{}];\n", name, f, f);
  }

  void AddOutput(size_t index) {
    const ValueId id = function_.outputs[index];
    const std::string name = fmt::format("f{}_o{}", number_, index);
    out_ += fmt::format("    {} [shape=ellipse, label={}];\n", name, Quoted(function_.value(id).name));
    Read(id, name);
  }

  const Module& module_;
  const Function& function_;
  const size_t number_;
  std::string out_, references_;
  std::map<ValueId, std::string> sources_;
};

}  // namespace

std::string DotText(const Module& module) {
  std::string out =
      "digraph model {\n  compound=true;\n  node [shape=box, style=rounded, fontname=\"sans-serif\", "
      "fontsize=11];\n";
  for (size_t i = 0; i < module.functions.size(); ++i) out += Cluster(module, i).Text();
  return out + "}\n";
}

}  // namespace fusebox::cli::page
