// SPDX-License-Identifier: Apache-2.0
// Measurements and reports of other commands, placed on the nodes of the page.
#include <algorithm>
#include <set>

#include "cli/page/page.h"
#include "host/base/buffer.h"

namespace fusebox::cli::page {
namespace {

Result<Json> ReadJson(const std::string& path) {
  FUSEBOX_ASSIGN(const std::string text, ReadTextFile(path));
  Json out = Json::parse(text, nullptr, false);
  if (out.is_discarded()) return Invalid(path + ": not JSON");
  return out;
}

using Kind = Json::value_t;

// Returns whether it is an object with these members. The script relies on them.
bool Has(const Json& json, std::initializer_list<std::pair<const char*, Kind>> members) {
  return json.is_object() && std::ranges::all_of(members, [&](const auto& member) {
           const auto found = json.find(member.first);
           if (found == json.end()) return false;
           return member.second == Kind::number_float ? found->is_number() : found->type() == member.second;
         });
}

bool IsRow(const Json& row) {
  return Has(row, {{"type", Kind::string},
                   {"name", Kind::string},
                   {"runner", Kind::string},
                   {"avg_ms", Kind::number_float},
                   {"calls", Kind::number_float},
                   {"flops", Kind::number_float}});
}

bool IsProfile(const Json& profile) {
  return Has(profile, {{"runs", Kind::number_float},
                       {"run_ms", Kind::number_float},
                       {"nodes_ms", Kind::number_float},
                       {"rows", Kind::array}}) &&
         std::ranges::all_of(profile["rows"], IsRow);
}

// The profile of the first contestant that has one. `fusebox bench` puts the model that is named first there.
const Json* FindProfile(const Json& file) {
  if (!Has(file, {{"contestants", Kind::array}})) return nullptr;
  for (const Json& one : file["contestants"])
    if (one.is_object() && one.contains("profile"))
      return IsProfile(one["profile"]) ? &one["profile"] : nullptr;
  return nullptr;
}

bool IsRule(const Json& rule) {
  return Has(rule, {{"rule", Kind::string}, {"outcome", Kind::string}, {"reasons", Kind::array}});
}

bool IsSite(const Json& site) {
  return Has(site, {{"composite", Kind::string},
                    {"fused", Kind::boolean},
                    {"rules", Kind::array},
                    {"emitted", Kind::array}}) &&
         std::ranges::all_of(site["rules"], IsRule);
}

bool IsReport(const Json& file) {
  return Has(file, {{"sites", Kind::array},
                    {"notes", Kind::array},
                    {"refused", Kind::array},
                    {"variables", Kind::array},
                    {"layers", Kind::array},
                    {"ops_before", Kind::object},
                    {"ops_after", Kind::object}}) &&
         std::ranges::all_of(file["sites"], IsSite);
}

// Returns the nodes of the file that a row covers: one node, the nodes of a partition, or none for a span.
std::set<std::pair<size_t, size_t>> NodesOf(const Json& row, const std::vector<Placement>& placements,
                                            const Runs& runs) {
  std::set<std::pair<size_t, size_t>> out;
  const std::string function = row.value("function", "");
  const std::string runner = row.value("runner", "");
  const auto found = std::ranges::find(runs.places, function, &decltype(runs.places)::value_type::first);
  if (found == runs.places.end()) return out;
  const std::vector<Runs::Place>& places = found->second;
  const size_t node = row.value("node", places.size());
  const bool partition = row.value("type", "") == "PARTITION" || row.value("nodes", 1) > 1;
  size_t index = 0;
  for (const Placement& placed : placements) {
    if (placed.function != function) continue;
    if (index < places.size() && (partition ? placed.runner == runner : index == node))
      out.emplace(places[index].function, places[index].node);
    ++index;
  }
  return out;
}

}  // namespace

Json MemoryJson(const std::vector<MemoryPlan>& plans) {
  Json out = Json::array();
  for (const MemoryPlan& plan : plans) {
    if (plan.pieces.empty()) continue;
    Json steps = Json::array();
    Json pieces = Json::array();
    for (const MemoryPlan::Step& step : plan.steps) steps.push_back({{"op", step.op}, {"node", step.node}});
    for (const MemoryPlan::Piece& p : plan.pieces)
      pieces.push_back(Json::array({p.name, p.offset, p.bytes, p.first, p.last, p.scratch}));
    out.push_back({{"function", plan.function},
                   {"bytes", plan.bytes},
                   {"steps", std::move(steps)},
                   {"pieces", std::move(pieces)}});
  }
  return out;
}

Result<Json> ProfileJson(const std::string& path, const std::vector<Placement>& placements,
                         const Runs& runs) {
  FUSEBOX_ASSIGN(const Json file, ReadJson(path));
  const Json* const found = FindProfile(file);
  if (found == nullptr)
    return Invalid(path + ": no profile; write it with `fusebox bench MODEL --profile --json`");
  Json out = *found;
  bool any = false;
  for (Json& row : out["rows"]) {
    Json at = Json::array();
    try {
      for (const auto& [function, node] : NodesOf(row, placements, runs)) at.push_back({function, node});
    } catch (const Json::exception& error) {
      return Invalid(path + ": " + error.what());
    }
    any = any || !at.empty();
    row["at"] = std::move(at);
  }
  if (any) return out;
  return Invalid(path +
                 ": no row is of a node of this model (it is of another model, or of a version of fusebox "
                 "without node numbers); write it with `fusebox bench MODEL --profile --json`");
}

Json LayersJson(Json rows, const std::string& function, const Runs& runs) {
  const auto found = std::ranges::find(runs.places, function, &decltype(runs.places)::value_type::first);
  for (Json& row : rows) {
    const size_t node = row["node"];
    row["at"] = Json::array();
    if (found == runs.places.end() || node >= found->second.size()) continue;
    const Runs::Place& place = found->second[node];
    row["at"].push_back({place.function, place.node});
  }
  return rows;
}

Result<Json> ReportJson(const std::string& path) {
  FUSEBOX_ASSIGN(Json file, ReadJson(path));
  if (IsReport(file)) return file;
  return Invalid(path +
                 ": no conversion report; write it with `fusebox convert INPUT -o MODEL --report FILE`");
}

}  // namespace fusebox::cli::page
