// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/base/print.h"
#include "cli/compare/layers.h"
#include "host/base/table.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

// How the value was found in the second model.
std::string MatchText(const Layer& layer) {
  if (layer.matched) return "name";
  return layer.difference.compared ? "position" : "-";
}

}  // namespace

std::string ToText(std::span<const Layer> layers, const Tolerance& tolerance) {
  Table table({"node", "op", "value", "type", "matched by", "largest difference", "error", "result"});
  Difference all;
  const Layer* first = nullptr;
  for (const Layer& layer : layers) {
    const Difference& d = layer.difference;
    if (d.compared && !d.within && first == nullptr) first = &layer;
    table.Row({std::to_string(layer.node), layer.op, FirstOfNames(layer.name), ToString(layer.type),
               MatchText(layer), d.compared ? fmt::format("{:.3g}", d.absolute) : "-",
               d.compared ? fmt::format("{:.2g}", layer.error) : "-",
               !d.compared ? "not compared"
               : d.within  ? "equal"
                           : "differs"});
    if (d.compared) all.Add(d);
  }
  std::string out = table.Text();
  if (first == nullptr)
    return out + fmt::format("no layer differs (atol {:g}, rtol {:g})\n", tolerance.atol, tolerance.rtol);
  out += fmt::format("first difference: node {} {} {}: {}\n", first->node, first->op,
                     FirstOfNames(first->name), first->difference.where);
  if (std::isfinite(all.atol))
    out += fmt::format("all layers would be equal with --atol {:.3g} --rtol {:g}\n", all.atol * 1.01,
                       tolerance.rtol);
  return out;
}

Json ToJson(std::span<const Layer> layers) {
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json out = Json::array();
  for (const Layer& layer : layers) {
    const Difference& d = layer.difference;
    Json row = {{"node", layer.node},           {"op", layer.op},         {"name", layer.name},
                {"type", ToString(layer.type)}, {"compared", d.compared}, {"other", layer.other}};
    if (d.compared)
      row.update({{"matched_by", MatchText(layer)},
                  {"equal", d.within},
                  {"max_absolute", finite(d.absolute)},
                  {"max_relative", finite(d.relative)},
                  {"error", finite(layer.error)},
                  {"where", d.where}});
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace fusebox::cli
