// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "cli/page/page.h"
#include "host/fusion/site_json.h"

namespace fusebox::cli::page {
namespace {

constexpr size_t kMostLoaded = 100;  // shown at most for one replaced node

// Returns a text that stays the same for a node when other nodes around it are replaced.
std::string IdentityOf(const Function& function, const Node& node) {
  std::string out(Name(node.op));
  for (const ValueId id : node.results)
    if (id != kNoValue) return out + "\n" + node.name + "\n" + function.value(id).name;
  return out + "\n" + node.name;
}

// By node of the loaded function: the node of the file that it is, or that it came from. Loading replaces
// nodes where they are, so both functions have the others in the same order.
struct Match {
  size_t node;
  bool same;
};
std::vector<Match> MatchNodes(const Function& file, const Function& loaded) {
  std::map<std::string, std::vector<size_t>> where;
  for (size_t i = 0; i < file.nodes.size(); ++i) where[IdentityOf(file, *file.nodes[i])].push_back(i);
  std::vector<Match> out;
  size_t next = 0;
  for (const auto& node : loaded.nodes) {
    const auto found = where.find(IdentityOf(loaded, *node));
    std::optional<size_t> index;
    if (found != where.end())
      if (const auto at = std::ranges::lower_bound(found->second, next); at != found->second.end())
        index = *at;
    if (index) next = *index + 1;
    const size_t last = file.nodes.empty() ? 0 : file.nodes.size() - 1;
    out.push_back({index.value_or(std::min(next, last)), index.has_value()});
  }
  return out;
}

using Rows = std::map<std::string, std::vector<Placement>>;

// By function; in each, one row per node, in order.
Rows RowsOf(const std::vector<Placement>& placements) {
  Rows rows;
  for (const Placement& row : placements) rows[row.function].push_back(row);
  return rows;
}

// The results of late fusion, by function and composite, in order.
class Sites {
 public:
  explicit Sites(const Model& loaded) {
    for (const SiteReport& site : loaded.fusions()) sites_[{site.function, site.composite}].push_back(&site);
  }
  const SiteReport* Next(const std::string& function, const std::string& composite) {
    const auto found = sites_.find({function, composite});
    if (found == sites_.end() || found->second.empty()) return nullptr;
    const SiteReport* const site = found->second.front();
    found->second.erase(found->second.begin());
    return site;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::vector<const SiteReport*>> sites_;
};

Json RowsOfFunction(const Function& file, const Function* loaded, const std::vector<Match>& matches,
                    const Rows& placements, Sites& sites) {
  Json rows = Json::array();
  for (const auto& node : file.nodes) {
    Json row = Json::object();
    if (node->is(Op::kStablehloComposite))
      if (const SiteReport* site = sites.Next(file.name, node->name)) row["site"] = ToJson(*site);
    rows.push_back(std::move(row));
  }
  const auto placed = placements.find(file.name);
  if (loaded == nullptr || placed == placements.end()) return rows;
  for (size_t i = 0; i < std::min(matches.size(), placed->second.size()); ++i) {
    const Placement& from = placed->second[i];
    if (matches[i].node >= rows.size()) continue;
    Json& row = rows[matches[i].node];
    if (matches[i].same) {
      row.update({{"runner", from.runner}, {"reason", from.why}});
    } else if (row["loaded"].size() < kMostLoaded) {
      row["loaded"].push_back({{"op", from.op}, {"runner", from.runner}, {"reason", from.why}});
    }
  }
  return rows;
}

}  // namespace

Runs RunsOf(const Module& file, const Model& loaded, const std::vector<Placement>& placed) {
  Runs out{.rows = Json::array(), .places = {}};
  const Rows placements = RowsOf(placed);
  Sites sites(loaded);
  for (size_t f = 0; f < file.functions.size(); ++f) {
    const Function& function = *file.functions[f];
    const Function* const other = loaded.module().Find(function.name);
    const std::vector<Match> matches = other == nullptr ? std::vector<Match>() : MatchNodes(function, *other);
    out.rows.push_back(RowsOfFunction(function, other, matches, placements, sites));
    auto& places = out.places.emplace_back(function.name, std::vector<Runs::Place>()).second;
    for (const Match& match : matches) places.push_back({f, match.node});
  }
  return out;
}

}  // namespace fusebox::cli::page
