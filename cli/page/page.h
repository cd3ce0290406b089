// SPDX-License-Identifier: Apache-2.0
// A model as one HTML page that needs nothing else: data as JSON, the project's own script and style.
//
// ViewsJson, ValuesJson, RunsJson, MemoryJson, ProfileJson -> PageHtml. The layout is computed here; the
// script (page.html, *.js) draws it and makes room when a node is opened. Names in a model are hostile: the
// script writes them as text only, and PageHtml escapes them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/model.h"
#include "host/plan/memory_plan.h"

namespace fusebox::cli::page {

using Json = nlohmann::ordered_json;

// A file with more nodes opens with its large functions in groups, closed.
inline constexpr size_t kMostOpenNodes = 1500;

// Consecutive nodes of a function, in execution order; so groups have no cycles either. By scopes of names
// where there are such.
struct Group {
  size_t begin, end;
  std::string title;
};
std::vector<Group> GroupsOf(const Function&);

// The layouts: first one view per function, then one per group.
// [{"title", "function", "group", "width", "height",
//   "nodes": [{"kind": "op", "group", "in", "out" or "const", "node" (op), "value" (others), "x", "y", "w", "h", "label",
//              "type", "views": [VIEW] (what is inside), "names": [NAME] (of these)}],
//   "edges": [{"from", "to", "value", "points": [x, y, ...]}]}], (x, y): centers
Json ViewsJson(const Module&);

// By function: {ID: {"quant": {...}, "count", "min", "max", "mean", "deviation", "zeros", "bins": [N],
// "first"}}, of constants, and of values with scales.
Json ValuesJson(const Module&);

// The runner of each node of `file`, by function: [{"runner", "reason", "loaded": [{"op", "runner",
// "reason"}], "site":
// {...}}] by node. A node that was replaced when the model was loaded has the nodes that replaced it.
struct Runs {
  Json rows = Json::array();
  // By function and node as loaded: the node of the file.
  struct Place {
    size_t function, node;
  };
  std::vector<std::pair<std::string, std::vector<Place>>> places;
};
Runs RunsOf(const Module& file, const Model& loaded, const std::vector<Placement>& placements);

// [{"function", "bytes", "steps": [{"op", "node"}], "pieces": [[NAME, OFFSET, BYTES, FIRST, LAST, SCRATCH]]}]
Json MemoryJson(const std::vector<MemoryPlan>& plans);

// Rows of `fusebox bench --profile --json`, with the nodes of the file: "at": [[FUNCTION, NODE]]. Error: no
// row is of a node of this model.
Result<Json> ProfileJson(const std::string& path, const std::vector<Placement>& placements, const Runs& runs);
// Rows of `fusebox compare --layers`, of the function of a signature as loaded, with their nodes: "at":
// [[FUNCTION, NODE]].
Json LayersJson(Json rows, const std::string& function, const Runs& runs);
// A report of `fusebox convert --report`.
Result<Json> ReportJson(const std::string& path);

// For Graphviz: a cluster per subgraph, dashed edges to those that a node refers to.
std::string DotText(const Module&);
// Custom node data of Model Explorer: the time of each node, or (null profile) what runs it.
Json ModelExplorerJson(const Module&, const Json& runs, const Json& profile);

// Longer texts are cut, which keeps pages of hostile files small.
std::string PageHtml(Json data, const std::string& title);

}  // namespace fusebox::cli::page
