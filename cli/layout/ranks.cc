// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <climits>
#include <cstdint>

#include "cli/layout/layout.h"

namespace fusebox::cli::layout {
namespace {

constexpr int64_t kMostBends = 300'000;

using Lists = std::vector<std::vector<int>>;

struct Neighbors {
  explicit Neighbors(const Graph& graph) : before(graph.nodes.size()), after(graph.nodes.size()) {
    for (const Graph::Edge& edge : graph.edges) {
      before[static_cast<size_t>(edge.to)].push_back(edge.from);
      after[static_cast<size_t>(edge.from)].push_back(edge.to);
    }
  }
  Lists before, after;
};

int Lowest(const std::vector<int>& ranks, const std::vector<int>& nodes) {
  int lowest = INT_MAX;
  for (const int node : nodes) lowest = std::min(lowest, ranks[static_cast<size_t>(node)]);
  return lowest;
}

// By source: the rank of the last node that its edges reach with at most `span` ranks each.
std::vector<int> LastRanks(const Graph& graph, const std::vector<int>& ranks, int span) {
  std::vector<int> last = ranks;
  for (const auto& [from, to] : graph.edges) {
    const int rank = ranks[static_cast<size_t>(to)];
    if (rank - ranks[static_cast<size_t>(from)] <= span)
      last[static_cast<size_t>(from)] = std::max(last[static_cast<size_t>(from)], rank);
  }
  return last;
}

// The most ranks that a routed edge may span: bends, and points of routes through them, stay below the limit.
int LongestSpan(const Graph& graph, const std::vector<int>& ranks) {
  const int most = ranks.empty() ? 1 : *std::ranges::max_element(ranks) + 1;
  for (int span = most;; span /= 2) {
    const std::vector<int> last = LastRanks(graph, ranks, span);
    int64_t bends = 0;
    int64_t points = 0;
    for (size_t v = 0; v < ranks.size(); ++v) bends += std::max(0, last[v] - ranks[v] - 1);
    for (const auto& [from, to] : graph.edges) {
      const int length = ranks[static_cast<size_t>(to)] - ranks[static_cast<size_t>(from)];
      if (length <= span) points += length;
    }
    if (span <= 1 || (bends <= kMostBends && points <= 4 * kMostBends)) return std::max(span, 1);
  }
}

void Join(Layered& layered, int upper, int lower) {
  layered.below[static_cast<size_t>(upper)].push_back(lower);
  layered.above[static_cast<size_t>(lower)].push_back(upper);
}

int AddItem(Layered& layered, const Layered::Item& item) {
  layered.items.push_back(item);
  layered.above.emplace_back();
  layered.below.emplace_back();
  return static_cast<int>(layered.items.size()) - 1;
}

}  // namespace

std::vector<int> RanksOf(const Graph& graph) {
  const Neighbors neighbors(graph);
  std::vector<int> ranks(graph.nodes.size(), 0);
  for (size_t v = 0; v < ranks.size(); ++v)
    for (const int u : neighbors.before[v]) ranks[v] = std::max(ranks[v], ranks[static_cast<size_t>(u)] + 1);
  // Moving a node down shortens the edges that leave it and lengthens those that enter.
  for (size_t v = ranks.size(); v-- > 0;) {
    const auto& after = neighbors.after[v];
    if (!after.empty() && after.size() > neighbors.before[v].size()) ranks[v] = Lowest(ranks, after) - 1;
  }
  return ranks;
}

Layered Split(const Graph& graph, const std::vector<int>& ranks) {
  Layered out;
  for (size_t v = 0; v < graph.nodes.size(); ++v)
    AddItem(out, {static_cast<int>(v), ranks[v], graph.nodes[v].width});
  const int span = LongestSpan(graph, ranks);
  const std::vector<int> last = LastRanks(graph, ranks, span);
  Lists chains(graph.nodes.size());
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    int upper = static_cast<int>(v);
    for (int rank = ranks[v] + 1; rank < last[v]; ++rank) {
      const int bend = AddItem(out, {-1, rank, 0});
      Join(out, upper, bend);
      chains[v].push_back(upper = bend);
    }
  }
  for (const auto& [from, to] : graph.edges) {
    const int length = ranks[static_cast<size_t>(to)] - ranks[static_cast<size_t>(from)];
    const auto& chain = chains[static_cast<size_t>(from)];
    std::vector<int>& bends = out.bends.emplace_back();
    if (length > span) continue;
    bends.assign(chain.begin(), chain.begin() + (length - 1));
    Join(out, bends.empty() ? from : bends.back(), to);
  }
  out.ranks.resize(ranks.empty() ? 0 : static_cast<size_t>(*std::ranges::max_element(ranks)) + 1);
  for (size_t i = 0; i < out.items.size(); ++i)
    out.ranks[static_cast<size_t>(out.items[i].rank)].push_back(static_cast<int>(i));
  return out;
}

}  // namespace fusebox::cli::layout
