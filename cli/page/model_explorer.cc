// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>

#include "cli/page/page.h"

namespace fusebox::cli::page {
namespace {

constexpr std::array kColors = {"#3b6fb6", "#c48a2c", "#3c8f84", "#7a57b0",
                                "#b5505e", "#5b8c3e", "#57748f", "#9a958a"};

// The ids of Model Explorer: of a graph, its name; of a node, its index.
Json GraphOf(Json results) { return {{"results", std::move(results)}}; }

Json TimesOf(const Module& module, const Json& profile) {
  std::vector<Json> results(module.functions.size(), Json::object());
  for (const Json& row : profile["rows"])
    for (const Json& at : row["at"]) {
      Json& sum = results[at[0].get<size_t>()][std::to_string(at[1].get<size_t>())]["value"];
      sum = (sum.is_null() ? 0.0 : sum.get<double>()) + row["avg_ms"].get<double>();
    }
  Json out = Json::object();
  for (size_t f = 0; f < results.size(); ++f) {
    if (results[f].empty()) continue;
    Json graph = GraphOf(std::move(results[f]));
    graph["gradient"] = {{{"stop", 0}, {"bgColor", "#fff5ec"}}, {{"stop", 1}, {"bgColor", "#d65426"}}};
    out[module.functions[f]->name] = std::move(graph);
  }
  return out;
}

}  // namespace

Json ModelExplorerJson(const Module& module, const Json& runs, const Json& profile) {
  if (!profile.is_null()) return TimesOf(module, profile);
  std::map<std::string, size_t> colors;
  Json out = Json::object();
  for (size_t f = 0; f < runs.size(); ++f) {
    Json results = Json::object();
    for (size_t i = 0; i < runs[f].size(); ++i) {
      const Json& row = runs[f][i];
      const std::string runner = row.contains("runner")   ? row.value("runner", "")
                                 : row.contains("loaded") ? row["loaded"][0].value("runner", "")
                                                          : "";
      if (runner.empty()) continue;
      const size_t color = colors.emplace(runner, colors.size()).first->second;
      results[std::to_string(i)] = {
          {"value", runner}, {"bgColor", kColors[color % kColors.size()]}, {"textColor", "#ffffff"}};
    }
    if (!results.empty()) out[module.functions[f]->name] = GraphOf(std::move(results));
  }
  return out;
}

}  // namespace fusebox::cli::page
