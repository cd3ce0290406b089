// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "cli/layout/layout.h"

namespace fusebox::cli::layout {
namespace {

constexpr int kSweeps = 24;
constexpr int kPatience = 6;

using Lists = std::vector<std::vector<int>>;

std::vector<int> Positions(const Layered& layered) {
  std::vector<int> positions(layered.items.size());
  for (const auto& rank : layered.ranks)
    for (size_t i = 0; i < rank.size(); ++i) positions[static_cast<size_t>(rank[i])] = static_cast<int>(i);
  return positions;
}

// Items in the order of a depth-first walk, so that what belongs together begins side by side.
void OrderByWalk(Layered& layered) {
  std::vector<bool> seen(layered.items.size());
  Lists ranks(layered.ranks.size());
  std::vector<int> stack;
  for (size_t first = 0; first < layered.items.size(); ++first) {
    stack.push_back(static_cast<int>(first));
    while (!stack.empty()) {
      const auto item = static_cast<size_t>(stack.back());
      stack.pop_back();
      if (seen[item]) continue;
      seen[item] = true;
      ranks[static_cast<size_t>(layered.items[item].rank)].push_back(static_cast<int>(item));
      const auto& below = layered.below[item];
      stack.insert(stack.end(), below.rbegin(), below.rend());
    }
  }
  layered.ranks = std::move(ranks);
}

// Sorts a rank by the mean position of each item's neighbors in the rank that is fixed. Items without such
// neighbors stay near their position.
void SortRank(std::vector<int>& rank, const Lists& neighbors, std::vector<int>& positions) {
  std::vector<std::pair<double, int>> keyed;
  for (const int item : rank) {
    const auto& near = neighbors[static_cast<size_t>(item)];
    double sum = 0;
    for (const int other : near) sum += positions[static_cast<size_t>(other)];
    keyed.emplace_back(
        near.empty() ? positions[static_cast<size_t>(item)] : sum / static_cast<double>(near.size()), item);
  }
  std::ranges::stable_sort(keyed, {}, &std::pair<double, int>::first);
  for (size_t i = 0; i < rank.size(); ++i) {
    rank[i] = keyed[i].second;
    positions[static_cast<size_t>(rank[i])] = static_cast<int>(i);
  }
}

void Sweep(Layered& layered, bool down, std::vector<int>& positions) {
  const size_t count = layered.ranks.size();
  for (size_t i = 1; i < count; ++i)
    SortRank(layered.ranks[down ? i : count - 1 - i], down ? layered.above : layered.below, positions);
}

// Between a rank and the one below: pairs of edges in opposite orders at both ends (a Fenwick tree counts the
// ends further right).
size_t CrossingsBelow(const Layered& layered, const std::vector<int>& rank, size_t width,
                      const std::vector<int>& positions) {
  std::vector<size_t> tree(width + 1);
  size_t crossings = 0;
  size_t total = 0;
  std::vector<int> ends;
  for (const int item : rank) {
    ends.clear();
    for (const int other : layered.below[static_cast<size_t>(item)])
      ends.push_back(positions[static_cast<size_t>(other)]);
    for (const int end : ends) {
      size_t before = 0;
      for (auto i = static_cast<size_t>(end) + 1; i > 0; i &= i - 1) before += tree[i];
      crossings += total - before;
    }
    for (const int end : ends)
      for (auto i = static_cast<size_t>(end) + 1; i <= width; i += i & (~i + 1)) ++tree[i];
    total += ends.size();
  }
  return crossings;
}

}  // namespace

size_t Crossings(const Layered& layered) {
  const std::vector<int> positions = Positions(layered);
  size_t crossings = 0;
  for (size_t r = 0; r + 1 < layered.ranks.size(); ++r)
    crossings += CrossingsBelow(layered, layered.ranks[r], layered.ranks[r + 1].size(), positions);
  return crossings;
}

void Order(Layered& layered) {
  OrderByWalk(layered);
  Lists best = layered.ranks;
  size_t fewest = Crossings(layered);
  std::vector<int> positions = Positions(layered);
  for (int sweep = 0, idle = 0; sweep < kSweeps && idle < kPatience && fewest > 0; ++sweep, ++idle) {
    Sweep(layered, sweep % 2 == 0, positions);
    const size_t crossings = Crossings(layered);
    if (crossings >= fewest) continue;
    fewest = crossings;
    best = layered.ranks;
    idle = -1;
  }
  layered.ranks = std::move(best);
}

}  // namespace fusebox::cli::layout
