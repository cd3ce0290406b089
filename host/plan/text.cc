// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "host/base/table.h"
#include "host/plan/plan.h"

namespace fusebox::plan {
namespace {

std::string ToText(const Place& place) {
  const auto where = [&]() -> std::string {
    switch (place.kind) {
      case Place::kArena: return fmt::format("arena {}", place.at);
      case Place::kOutput: return fmt::format("output {}", place.at);
      case Place::kAlias: return fmt::format("shares value {}", place.at);
      case Place::kKnown: return "known";
      case Place::kKept: return "computed once";
      case Place::kVariable: return "variable";
      case Place::kDynamic: return "sized at run time";
    }
    return {};
  };
  return ToString(place.type) + " " + where();
}

std::string Number(const Code& code, size_t node) {
  if (code.origin == nullptr) return std::to_string(node);
  return code.origin->nodes[node] == delegate::kNoNode ? "" : std::to_string(code.origin->nodes[node]);
}

std::string_view Runner(const Unit& unit, const Step* step, const delegate::Session* delegates) {
  if (step == nullptr) return "while planning";
  if (unit.part >= 0)
    return step->part >= 0 && delegates->runs(static_cast<size_t>(unit.part)) ? "delegate" : "kernels";
  if (unit.kernel) return unit.kernel.plugin->id();
  return unit.runs_body ? "body" : "host";
}

}  // namespace

std::string ToText(const Code& code, const Segment& segment, const delegate::Session* delegates) {
  std::unordered_map<ValueId, std::string> where;
  for (const Place& place : segment.places) where[place.value] = ToText(place);
  Table table({"node", "op", "run by", "results"});
  for (size_t i = segment.begin; i < segment.end; ++i) {
    const Node& node = *code.function->nodes[i];
    const auto found = std::ranges::find(segment.steps, i, &Step::node);
    const Step* const step = found == segment.steps.end() ? nullptr : &*found;
    std::string results;
    for (const ValueId id : node.results) {
      if (id != kNoValue) results += (results.empty() ? "" : ", ") + where[id];
    }
    size_t scratch = 0;
    if (step != nullptr)
      for (const Step::Slot& slot : step->slots) scratch += slot.bytes;
    if (scratch > 0) results += fmt::format("; scratch {}", scratch);
    table.Row({Number(code, i), node.name.empty() ? std::string(Name(node.op)) : node.name,
               std::string(Runner(code.units[i], step, delegates)), std::move(results)});
  }
  return table.Text("  ");
}

}  // namespace fusebox::plan
