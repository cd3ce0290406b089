// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>

#include "cli/inspect/inspect.h"
#include "host/base/table.h"

namespace fusebox::cli {
namespace {

constexpr size_t kMostInCell = 4;  // more values make a row too wide to read

std::string NameOf(const Function& function, const std::vector<ValueId>& ids, size_t i,
                   const std::vector<std::string>& names) {
  return i < names.size() ? names[i] : function.value(ids[i]).name;
}

// "x f32[1,4], and 8 more"
std::string Described(const Function& function, const std::vector<ValueId>& ids,
                      const std::vector<std::string>& names) {
  std::string out;
  const size_t shown = ids.size() > kMostInCell ? 1 : ids.size();
  for (size_t i = 0; i < shown; ++i)
    out +=
        (i > 0 ? ", " : "") + NameOf(function, ids, i, names) + " " + ToString(function.value(ids[i]).type);
  if (ids.size() > shown) out += ", and " + std::to_string(ids.size() - shown) + " more";
  return out.empty() ? "-" : out;
}

// The inputs and outputs of a signature, if they do not fit into cells.
std::string Interface(const Function& function, const Signature& s) {
  if (std::max(function.inputs.size(), function.outputs.size()) <= kMostInCell) return "";
  Table table({"signature " + s.key, "name", "type"});
  const auto list = [&](const char* what, const auto& ids, const auto& names) {
    for (size_t i = 0; i < ids.size(); ++i)
      table.Row(
          {what + std::to_string(i), NameOf(function, ids, i, names), ToString(function.value(ids[i]).type)});
  };
  list("input ", function.inputs, s.input_names);
  list("output ", function.outputs, s.output_names);
  return "\n" + table.Text();
}

// "x f32[1,4], W f32[8,4] const": operands or results of a node.
std::string Values(const Function& function, std::span<const ValueId> ids) {
  std::string out;
  for (const ValueId id : ids) {
    if (!out.empty()) out += ", ";
    if (id == kNoValue) {
      out += "-";
      continue;
    }
    const Value& value = function.value(id);
    out += "%" + std::to_string(id) + " " + ToString(value.type);
    if (value.is_const()) out += " const";
    else if (value.is_variable) out += " variable";
  }
  return out.empty() ? "-" : out;
}

// `entries` begins with the signatures, in order.
std::string Signatures(const Module& module, const std::vector<Model::Entry>& entries) {
  Table table({"signature", "can run", "subgraph", "inputs", "outputs"});
  std::string refused, wide;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Status& status = entries[i].status;
    const bool main = i >= module.signatures.size();
    if (!status)
      refused += Printable((main ? "the main subgraph" : "signature " + entries[i].signature) +
                           " cannot run: " + status.error().message) +
                 "\n";
    const Function* function = module.Find(entries[i].function);
    if (main || function == nullptr) continue;
    const Signature& s = module.signatures[i];
    table.Row({s.key, status ? "yes" : "no", s.function,
               Described(*function, function->inputs, s.input_names),
               Described(*function, function->outputs, s.output_names)});
    wide += Interface(*function, s);
  }
  return (table.empty() ? "no signatures\n" : table.Text()) + refused + wide;
}

std::string Subgraphs(const Module& module) {
  Table table({"subgraph", "name", "nodes", "constant bytes", "inputs", "outputs"});
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const Function& f = *module.functions[i];
    table.Row({std::to_string(i), f.name, std::to_string(f.nodes.size()), std::to_string(ConstantBytes(f)),
               Described(f, f.inputs, {}), Described(f, f.outputs, {})});
  }
  return table.Text();
}

std::string Ops(const Module& module) {
  Table table({"op", "count"});
  for (const auto& [op, count] : CountOps(module)) table.Row({op, std::to_string(count)});
  return table.empty() ? "no nodes\n" : table.Text();
}

std::string MetadataRows(const Module& module) {
  Table table({"metadata", "bytes"});
  for (const Metadata& m : module.metadata) table.Row({m.name, std::to_string(m.data.size())});
  return table.empty() ? "" : "\n" + table.Text();
}

// "a loop: 24 nodes (4 LOGISTIC, 3 MUL, ...)", the most frequent ops first
std::string Counted(const std::vector<ReplacedNode>& nodes) {
  constexpr size_t kMost = 4;
  std::map<std::string, int> counts;
  for (const ReplacedNode& node : nodes) ++counts[node.op];
  std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, int>::second);
  const std::string what = counts.contains("WHILE") ? "a loop: " : "";
  std::string out = what + std::to_string(nodes.size()) + " nodes (";
  for (size_t i = 0; i < std::min(kMost, sorted.size()); ++i)
    out += (i > 0 ? ", " : "") + std::to_string(sorted[i].second) + " " + sorted[i].first;
  return out + (sorted.size() > kMost ? ", ...)" : ")");
}

std::string Nodes(const Function& function) {
  Table table({"node", "op", "inputs", "outputs", "options"});
  for (size_t i = 0; i < function.nodes.size(); ++i) {
    const Node& node = *function.nodes[i];
    std::string options = node.attrs.empty() ? "" : ToString(node.attrs);
    if (node.is(Op::kStablehloComposite)) options = node.name + " " + options;
    if (node.fused) options += " fused by " + node.fused->plugin + " " + node.fused->plugin_version;
    if (node.fused && !node.fused->replaces.empty())
      options += " instead of " + Counted(node.fused->replaces);
    if (!node.body.empty()) options += " body " + node.body;
    table.Row({std::to_string(i), OpName(node), Values(function, node.operands),
               Values(function, node.results), options});
  }
  return "\nsubgraph " + Printable(function.name) + "\n" + (table.empty() ? "no nodes\n" : table.Text());
}

}  // namespace

std::string OpName(const Node& node) {
  return node.is(Op::kCustom) ? "CUSTOM:" + node.name : std::string(Name(node.op));
}

std::map<std::string, int> CountOps(const Function& function) {
  std::map<std::string, int> counts;
  for (const auto& node : function.nodes) ++counts[OpName(*node)];
  return counts;
}

std::map<std::string, int> CountOps(const Module& module) {
  std::map<std::string, int> counts;
  for (const auto& function : module.functions) {
    for (const auto& [op, count] : CountOps(*function)) counts[op] += count;
  }
  return counts;
}

size_t ConstantBytes(const Function& function) {
  size_t bytes = 0;
  for (ValueId id = 0; id < function.value_count(); ++id) bytes += function.value(id).data.size();
  return bytes;
}

std::string InspectText(const Module& module, const std::vector<Model::Entry>& entries) {
  std::string out = Printable(module.source) + "\n";
  if (!module.description.empty()) out += Printable(module.description) + "\n";
  out += "\n" + Signatures(module, entries) + "\n" + Subgraphs(module) + "\n" + Ops(module) +
         MetadataRows(module);
  if (module.appended.size() > 0)
    out += "\nappended: " + std::to_string(module.appended.size()) + " bytes (a zip)\n";
  for (const auto& function : module.functions) out += Nodes(*function);
  return out;
}

}  // namespace fusebox::cli
