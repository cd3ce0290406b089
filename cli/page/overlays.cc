// SPDX-License-Identifier: Apache-2.0
// What other commands measured and reported, placed on the nodes of the page.
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

// The profile of the first contestant that has one. `fusebox bench` puts the model that is named first there.
const Json* FindProfile(const Json& file) {
  const auto all = file.is_object() ? file.find("contestants") : file.end();
  if (!file.is_object() || all == file.end() || !all->is_array()) return nullptr;
  for (const Json& one : *all)
    if (one.is_object() && one.contains("profile") && one["profile"].is_object()) return &one["profile"];
  return nullptr;
}

bool IsRow(const Json& row) {
  return row.is_object() && row.contains("who") && row["who"].is_string() && row.contains("avg_ms") &&
         row["avg_ms"].is_number() && row.contains("type") && row["type"].is_string();
}

// The nodes of the file that a row is of: one, those of a partition, or (a span) none.
std::set<std::pair<size_t, size_t>> NodesOf(const Json& row, const std::vector<Placement>& placements,
                                            const Runs& runs) {
  std::set<std::pair<size_t, size_t>> out;
  const std::string function = row.value("function", ""), who = row.value("who", "");
  const auto found = std::ranges::find(runs.places, function, &decltype(runs.places)::value_type::first);
  if (found == runs.places.end()) return out;
  const std::vector<Runs::Place>& places = found->second;
  const size_t node = row.value("node", places.size());
  const bool partition = row.value("type", "") == "PARTITION" || row.value("nodes", 1) > 1;
  size_t index = 0;
  for (const Placement& placed : placements) {
    if (placed.function != function) continue;
    if (index < places.size() && (partition ? placed.who == who : index == node))
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
    Json steps = Json::array(), pieces = Json::array();
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
  const Json rows = found != nullptr ? found->value("rows", Json::array()) : Json();
  if (!rows.is_array() || !std::ranges::all_of(rows, IsRow))
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
  if (file.is_object() && file.contains("sites") && file["sites"].is_array() && file.contains("ops_after"))
    return file;
  return Invalid(path +
                 ": no conversion report; write it with `fusebox convert INPUT -o MODEL --report FILE`");
}

}  // namespace fusebox::cli::page
