// SPDX-License-Identifier: Apache-2.0
// Variables: their writers, freezing of unwritten ones, and the written form of the others.
#include <algorithm>
#include <map>
#include <set>

#include "converter/passes/pass.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter {
namespace {

// The variable of each resource value of a function.
std::map<ValueId, std::string> Handles(const Function& f) {
  std::map<ValueId, std::string> out;
  for (const auto& node : f.nodes)
    if (node->is(Op::kVarHandle)) out[node->results[0]] = node->attrs.str("shared_name", "");
  return out;
}

// True if the node only reads the variable. Bodies of composites and loops name their variables themselves.
bool OnlyReads(const Node& node) {
  if (node.is(Op::kReadVariable) || Info(node.op).effects == Effects::kControl) return true;
  return node.is(Op::kOpaque) && (node.name == "ReadVariableOp" || node.name == "ResourceGather" ||
                                  node.name == "VariableShape" || node.name == "VarIsInitializedOp");
}

}  // namespace

Status AnalyzeVariables(Context& context) {
  std::set<std::string> used;
  std::map<std::string, std::string> writers;
  bool unknown_write = false;
  for (const auto& f : context.module.functions) {
    const auto handles = Handles(*f);
    for (const auto& [value, name] : handles) used.insert(name);
    for (const auto& node : f->nodes) {
      if (OnlyReads(*node) || node->is(Op::kVarHandle)) continue;
      for (ValueId v : node->operands) {
        if (v == kNoValue || f->value(v).type.dtype != DType::kResource) continue;
        const auto it = handles.find(v);
        if (it == handles.end()) unknown_write |= node->is(Op::kAssignVariable);
        else
          writers.emplace(it->second, f->name + ": " +
                                          (node->location.name.empty() ? std::string(Name(node->op))
                                                                       : node->location.name));
      }
    }
  }
  for (Variable& v : context.module.variables) {
    using enum Variable::Mutability;
    const auto writer = writers.find(v.name);
    v.mutability = writer != writers.end() || unknown_write ? kMutable
                   : used.contains(v.name)                  ? kReadOnly
                                                            : kUnused;
    v.why = writer != writers.end() ? "written by " + writer->second
            : unknown_write         ? "possibly written through an unknown handle"
            : used.contains(v.name) ? "never written"
                                    : "never read";
    Variable shown = v;
    shown.initial = {};
    context.report.variables.push_back(std::move(shown));
  }
  return {};
}

Status Freeze(Context& context) {
  for (const auto& f : context.module.functions) {
    const auto handles = Handles(*f);
    Rewriter r(*f);
    FUSEBOX_TRY(r.Walk([&](Node& node) -> Status {
      if (!node.is(Op::kReadVariable)) return {};
      const auto it = handles.find(node.operands[0]);
      const Variable* v = it == handles.end() ? nullptr : context.module.FindVariable(it->second);
      if (v) f->value(node.results[0]).type = v->type;
      if (!v || !v->initial || v->mutability != Variable::Mutability::kReadOnly) return {};
      r.Forward(node.results[0], f->AddConst(v->type, v->initial, v->name));
      r.Drop(node);
      return {};
    }));
    for (const auto& node : f->nodes)
      if (node->is(Op::kVarHandle) && r.reads(node->results[0]) == 0) r.Drop(*node);
  }
  return {};
}

// A mutable variable starts with its checkpoint value: one function assigns all of them, and every entry
// calls it once.
Status WriteVariables(Context& context) {
  Module& module = context.module;
  std::set<std::string> used;
  for (const auto& f : module.functions)
    for (const auto& [value, name] : Handles(*f)) used.insert(name);
  std::erase_if(module.variables, [&](const Variable& v) { return !used.contains(v.name); });
  // Variables without a value here are assigned by the model: a .tflite has its own CALL_ONCE.
  if (std::ranges::none_of(module.variables, [](const Variable& v) { return bool(v.initial); })) return {};
  Function& init = module.Add("initialize_variables");
  for (const Variable& v : module.variables) {
    if (!v.initial) continue;
    context.Note("variable " + v.name +
                 " keeps its value from call to call: Session::ResetState starts it anew, in TFLite a new "
                 "interpreter");
    const ValueId handle = init.AddNode(Op::kVarHandle, {}, {Type{DType::kResource, Shape::Scalar()}},
                                        MakeAttrs("shared_name", v.name))
                               .results[0];
    init.AddNode(Op::kAssignVariable, {handle, init.AddConst(v.type, v.initial, v.name)}, {});
  }
  for (const Signature& s : module.signatures) {
    module.Find(s.function)
        ->InsertNode(0, Op::kCallOnce, {}, {}, MakeAttrs("init_subgraph_index", FunctionRef{init.name}));
  }
  return {};
}

}  // namespace fusebox::converter
