// SPDX-License-Identifier: Apache-2.0
#include "cli/layout/layout.h"

#include <algorithm>
#include <cmath>

namespace fusebox::cli::layout {
namespace {

constexpr double kMargin = 24;
constexpr double kRankGap = 40;
constexpr double kMostRankGap = 160;

// Top and bottom of a row.
struct Row {
  double top, bottom;
};

// The more an edge runs to the side, the more room it has.
double GapAbove(const Layered& layered, const std::vector<double>& x, const std::vector<int>& rank) {
  double most = 0;
  for (const int item : rank)
    for (const int upper : layered.above[static_cast<size_t>(item)])
      most = std::max(most, std::abs(x[static_cast<size_t>(upper)] - x[static_cast<size_t>(item)]));
  return std::min(kRankGap + most / 16, kMostRankGap);
}

std::vector<Row> RowsOf(const Graph& graph, const Layered& layered, const std::vector<double>& x) {
  std::vector<Row> rows;
  for (const auto& rank : layered.ranks) {
    double height = 0;
    for (const int item : rank)
      if (const auto& i = layered.items[static_cast<size_t>(item)]; !i.bend())
        height = std::max(height, graph.nodes[static_cast<size_t>(i.node)].height);
    const double top = rows.empty() ? kMargin : rows.back().bottom + GapAbove(layered, x, rank);
    rows.push_back({top, top + height});
  }
  return rows;
}

// Moves everything to the right of the margin; returns the width.
double MoveToMargin(const Layered& layered, std::vector<double>& x) {
  double low = 1e300;
  double high = -1e300;
  for (size_t i = 0; i < x.size(); ++i) {
    low = std::min(low, x[i] - layered.items[i].width / 2);
    high = std::max(high, x[i] + layered.items[i].width / 2);
  }
  if (x.empty()) return 2 * kMargin;
  for (double& value : x) value += kMargin - low;
  return high - low + 2 * kMargin;
}

// Straight through the rows between.
std::vector<Point> RouteOf(const Graph& graph, const Graph::Edge& edge, const std::vector<int>& bends,
                           const Layered& layered, const std::vector<double>& x, const std::vector<Row>& rows,
                           const std::vector<Point>& nodes) {
  const auto from = static_cast<size_t>(edge.from);
  const auto to = static_cast<size_t>(edge.to);
  std::vector<Point> route = {{nodes[from].x, nodes[from].y + graph.nodes[from].height / 2}};
  for (const int bend : bends) {
    const auto b = static_cast<size_t>(bend);
    const Row& row = rows[static_cast<size_t>(layered.items[b].rank)];
    route.push_back({x[b], row.top});
    if (row.bottom > row.top) route.push_back({x[b], row.bottom});
  }
  route.push_back({nodes[to].x, nodes[to].y - graph.nodes[to].height / 2});
  return route;
}

}  // namespace

Layout Lay(const Graph& graph) {
  Layered layered = Split(graph, RanksOf(graph));
  Order(layered);
  std::vector<double> x = Columns(layered);
  Layout out;
  out.width = MoveToMargin(layered, x);
  const std::vector<Row> rows = RowsOf(graph, layered, x);
  out.height = (rows.empty() ? kMargin : rows.back().bottom) + kMargin;
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const Row& row = rows[static_cast<size_t>(layered.items[v].rank)];
    out.nodes.push_back({x[v], (row.top + row.bottom) / 2});
  }
  for (size_t e = 0; e < graph.edges.size(); ++e)
    out.routes.push_back(RouteOf(graph, graph.edges[e], layered.bends[e], layered, x, rows, out.nodes));
  return out;
}

}  // namespace fusebox::cli::layout
