// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "host/plugin/call.h"
#include "host/run/run.h"

namespace fusebox::run {

Program::~Program() { FreeInstances(codes_); }

void Program::FreeInstances(std::span<const std::unique_ptr<plan::Code>> codes) {
  for (const auto& code : codes) {
    for (const plan::Unit& unit : code->units) {
      if (unit.instance == nullptr || !FBX_HAS(unit.kernel.kernel, free)) continue;
      const InCall in({AsAbi(unit.kernel.plugin->id()), "kernel", unit.kernel.kernel->op, {}});
      unit.kernel.kernel->free(unit.kernel.kernel->user, const_cast<void*>(unit.instance));
    }
  }
}

Status Program::StatusOf(std::string_view entry) const {
  const auto found = refused_.find(entry);
  return found == refused_.end() ? Status() : found->second;
}

const plan::Code* Program::Find(std::string_view function) const {
  const auto found = by_name_.find(function);
  return found == by_name_.end() ? nullptr : found->second;
}

std::vector<size_t> Program::PartsOf(const plan::Code& entry) const {
  std::vector<size_t> parts;
  std::set<const plan::Code*> seen;
  const auto visit = [&](const auto& self, const plan::Code& code) -> void {
    if (!seen.insert(&code).second) return;
    for (const plan::Unit& unit : code.units) {
      if (unit.part >= 0) {
        parts.push_back(static_cast<size_t>(unit.part));
        continue;
      }
      for (const plan::Code* callee : unit.callees) self(self, *callee);
    }
  };
  if (!parts_.empty()) visit(visit, entry);
  return parts;
}

std::set<const plan::Code*> Program::CalledBy(const plan::Code& code) {
  std::set<const plan::Code*> called;
  const auto visit = [&](const auto& self, const plan::Code& caller) -> void {
    if (!called.insert(&caller).second) return;
    for (size_t i = 0; i < caller.units.size(); ++i)
      for (const plan::Code* callee : caller.units[i].always_called(*caller.function->nodes[i]))
        self(self, *callee);
  };
  visit(visit, code);
  return called;
}

// The placement of one node of the module, from its unit in the program.
Placement Program::PlacementOf(const plan::Code& code, size_t index, const Function& function,
                               size_t number) const {
  const Node& node = *function.nodes[number];
  const plan::Unit& unit = code.units[index];
  Placement row{.function = function.name,
                .node = Describe(node, number),
                .op = std::string(node.is(Op::kCustom) ? std::string_view(node.name) : Name(node.op)),
                .runner = "host",
                .why = ""};
  if (unit.kernel) row.runner = unit.only_infers ? std::string_view("nobody") : unit.kernel.plugin->id();
  if (unit.runs_body) {
    row.runner = "body";
    row.why = fmt::format("runs function {}", node.body);
  }
  if (node.fused != nullptr) {
    row.why += fmt::format("{}fused by rule {} of {} {}", row.why.empty() ? "" : "; ", node.fused->rule,
                           node.fused->plugin, node.fused->plugin_version);
  }
  return row;
}

void Program::AddPlacements(const plan::Code& code, const delegate::Session* session,
                            std::vector<Placement>& rows) const {
  const auto found = offered_.find(&code);
  if (found == offered_.end()) {
    for (size_t i = 0; i < code.units.size(); ++i) rows.push_back(PlacementOf(code, i, *code.function, i));
    return;
  }
  const Offered& offered = *found->second;
  std::vector<Placement> placed(offered.function->nodes.size());
  for (size_t i = 0; i < code.units.size(); ++i) {
    const int number = code.units[i].part;
    if (number < 0) {
      const size_t node = code.origin == nullptr ? i : code.origin->nodes[i];
      placed[node] = PlacementOf(code, i, *offered.function, node);
      continue;
    }
    const auto part = static_cast<size_t>(number);
    const plan::Code& body = *part_codes_[part];
    for (size_t k = 0; k < body.units.size(); ++k) {
      const size_t node = body.origin->nodes[k];
      placed[node] = PlacementOf(body, k, *offered.function, node);
      if (session == nullptr || session->why(part).empty()) {
        placed[node].runner = ToString(*parts_[part]);
      } else {
        placed[node].why += (placed[node].why.empty() ? "" : "; ") + session->why(part);
      }
    }
  }
  for (size_t i = 0; i < placed.size(); ++i) {
    const std::string why = ToString(offered.answers[i]);
    if (!why.empty()) placed[i].why += (placed[i].why.empty() ? "" : "; ") + why;
    rows.push_back(std::move(placed[i]));
  }
}

std::vector<Placement> Program::placements(const delegate::Session* session) const {
  std::vector<Placement> rows;
  for (const auto& code : codes_) {
    const bool body = std::find(part_codes_.begin(), part_codes_.end(), code.get()) != part_codes_.end();
    if (!body) AddPlacements(*code, session, rows);
  }
  return rows;
}

}  // namespace fusebox::run
