// SPDX-License-Identifier: Apache-2.0
// Writes lookup tables: one function initializes all of them, and every entry that uses one calls it once.
#include <algorithm>
#include <map>

#include "converter/passes/pass.h"
#include "host/graph/calls.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter {
namespace {

bool IsFilled(const Node& node) {
  return node.is(Op::kHashtable) && node.attrs.Find("keys") && node.attrs.Find("values");
}

bool UsesTables(const Module& module, const std::string& entry) {
  return std::ranges::any_of(Reachable(module, {entry}), [](const Function* f) {
    return std::ranges::any_of(f->nodes, [](const auto& node) { return IsFilled(*node); });
  });
}

}  // namespace

Status WriteTables(Context& context) {
  Module& module = context.module;
  std::vector<std::string> entries;
  for (const Signature& s : module.signatures)
    if (UsesTables(module, s.function)) entries.push_back(s.function);
  std::map<int64_t, Attrs> tables;
  for (const auto& f : module.functions) {
    for (const auto& node : f->nodes) {
      if (!IsFilled(*node)) continue;
      tables.emplace(node->attrs.i64("table_id", 0), node->attrs);
      node->attrs.Erase("keys");
      node->attrs.Erase("values");
    }
  }
  if (tables.empty()) return {};
  Function& init = module.Add("initialize_tables");
  for (auto& [id, attrs] : tables) {
    const Tensor keys = std::get<Tensor>(*attrs.Find("keys"));
    const Tensor values = std::get<Tensor>(*attrs.Find("values"));
    attrs.Erase("keys");
    attrs.Erase("values");
    const ValueId handle =
        init.AddNode(Op::kHashtable, {}, {{DType::kResource, Shape::Scalar()}}, attrs).results[0];
    init.AddNode(Op::kHashtableImport, {handle, init.AddConst(keys), init.AddConst(values)}, {});
  }
  for (const std::string& entry : entries) {
    module.Find(entry)->InsertNode(0, Op::kCallOnce, {}, {},
                                   MakeAttrs("init_subgraph_index", FunctionRef{init.name}));
  }
  return {};
}

}  // namespace fusebox::converter
