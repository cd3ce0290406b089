// SPDX-License-Identifier: Apache-2.0
// Metadata "fusebox.fused": a FlexBuffer map, one entry per fused op, keyed "subgraph/operator".
#include <algorithm>

#include "host/fusion/fusion.h"
#include "host/graph/flex.h"

namespace fusebox {
namespace {

constexpr std::string_view kName = "fusebox.fused";

int64_t IndexOf(const Module& module, const std::string& function) {
  for (size_t i = 0; i < module.functions.size(); ++i)
    if (module.functions[i]->name == function) return static_cast<int64_t>(i);
  return -1;
}

Status AttachOne(Module& module, const std::string& key, const Attrs& record) {
  const int64_t subgraph = record.i64("subgraph", -1);
  const int64_t op = record.i64("op", -1);
  const int64_t body = record.i64("body", -1);
  const auto count = static_cast<int64_t>(module.functions.size());
  if (subgraph < 0 || subgraph >= count || body >= count)
    return Invalid("entry " + key + ": no such subgraph");
  Function& function = *module.functions[static_cast<size_t>(subgraph)];
  if (op < 0 || op >= static_cast<int64_t>(function.nodes.size()))
    return Invalid("entry " + key + ": no such operator");
  Node& node = *function.nodes[static_cast<size_t>(op)];
  node.fused = std::make_shared<const Provenance>(
      Provenance{record.str("plugin", ""), record.str("plugin_version", ""), record.str("rule", ""),
                 record.str("composite", "")});
  if (body < 0) return {};
  if (body == subgraph) return Invalid("entry " + key + ": the body is the operator's own subgraph");
  const Function& kept = *module.functions[static_cast<size_t>(body)];
  if (kept.inputs.size() != node.operands.size() || kept.outputs.size() != node.results.size()) {
    return Invalid("entry " + key + ": operator and body differ in the number of operands or results");
  }
  node.body = kept.name;
  return {};
}

}  // namespace

void RecordFused(Module& module) {
  std::erase_if(module.metadata, [](const Metadata& m) { return m.name == kName; });
  Attrs all;
  for (size_t f = 0; f < module.functions.size(); ++f) {
    const auto& nodes = module.functions[f]->nodes;
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (!nodes[n]->fused) continue;
      auto record = std::make_shared<Attrs>();
      record->Set("subgraph", static_cast<int64_t>(f));
      record->Set("op", static_cast<int64_t>(n));
      record->Set("plugin", nodes[n]->fused->plugin);
      record->Set("plugin_version", nodes[n]->fused->plugin_version);
      record->Set("rule", nodes[n]->fused->rule);
      record->Set("composite", nodes[n]->fused->composite);
      if (!nodes[n]->body.empty()) record->Set("body", IndexOf(module, nodes[n]->body));
      all.Set(std::to_string(f) + "/" + std::to_string(n), std::shared_ptr<const Attrs>(std::move(record)));
    }
  }
  if (all.empty()) return;
  const std::string bytes = WriteFlexMap(all);
  module.metadata.push_back({std::string(kName), Buffer::Copy(std::as_bytes(std::span(bytes)))});
}

Status AttachFused(Module& module) {
  const auto at = std::find_if(module.metadata.begin(), module.metadata.end(),
                               [](const Metadata& m) { return m.name == kName; });
  if (at == module.metadata.end()) return {};
  const std::string place = "metadata " + std::string(kName);
  const std::string_view bytes(reinterpret_cast<const char*>(at->data.data()), at->data.size());
  FUSEBOX_ASSIGN(const Attrs all, ReadFlexMap(bytes).At(place));
  bool bodies = false;
  for (const auto& [key, value] : all) {
    const auto* record = std::get_if<std::shared_ptr<const Attrs>>(&value);
    if (!record || !*record) return Invalid(place + ": entry " + key + " is not a map");
    FUSEBOX_TRY(AttachOne(module, key, **record).At(place));
    bodies = bodies || (*record)->i64("body", -1) >= 0;
  }
  if (!bodies) return {};
  return Verify(module).At(place);  // rejects cycles from a body to its operator
}

}  // namespace fusebox
