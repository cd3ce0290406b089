// SPDX-License-Identifier: Apache-2.0
// The nodes that a fused op replaces: listed when it is fused, and attached to the ops of an imported file.
#include <algorithm>
#include <map>
#include <span>

#include "host/fusion/fusion.h"
#include "host/graph/calls.h"

namespace fusebox {
namespace {

// An unrolled loop has thousands of nodes.
constexpr size_t kMostNodes = 512;

// Number of the ops that Stamp marks as fused.
size_t Stamped(const std::vector<std::string>& emitted) {
  if (emitted.size() == 1) return 1;
  return static_cast<size_t>(std::ranges::count_if(emitted, [](const std::string& name) {
    const std::optional<Op> op = FindOp(name);
    return !op || !Has(*op, kMovesData);
  }));
}

}  // namespace

std::vector<ReplacedNode> NodesOf(const Module& module, const std::string& body) {
  std::vector<ReplacedNode> out;
  for (const Function* function : Reachable(module, {body})) {
    for (const auto& node : function->nodes) {
      if (out.size() == kMostNodes) return out;
      const bool named = node->is(Op::kCustom) || node->is(Op::kOpaque) || node->is(Op::kStablehloComposite);
      out.push_back({named ? node->name : std::string(Name(node->op)), node->location.name});
    }
  }
  return out;
}

void AttachReplaced(Module& module, std::span<const SiteReport> sites) {
  std::map<std::string, std::vector<Node*>> fused;
  for (const auto& function : module.functions)
    for (const auto& node : function->nodes)
      if (node->fused) fused[node->fused->composite].push_back(node.get());
  for (auto& [composite, nodes] : fused) {
    std::vector<const SiteReport*> sources;
    for (const SiteReport& site : sites)
      if (site.fused && site.composite == composite)
        sources.insert(sources.end(), Stamped(site.emitted), &site);
    if (sources.size() != nodes.size()) continue;  // a pass removed an op, so the order tells nothing
    for (size_t i = 0; i < nodes.size(); ++i) {
      auto provenance = std::make_shared<Provenance>(*nodes[i]->fused);
      provenance->replaces = sources[i]->replaced;
      nodes[i]->fused = std::move(provenance);
    }
  }
}

}  // namespace fusebox
