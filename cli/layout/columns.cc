// SPDX-License-Identifier: Apache-2.0
// Brandes, Köpf: "Fast and simple horizontal coordinate assignment", 2001. Items that are aligned with the
// median of their neighbors form vertical blocks; blocks are packed. This is done four times, from above and
// from below, to the left and to the right, and the two middle results are averaged.
#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "cli/layout/layout.h"

namespace fusebox::cli::layout {
namespace {

constexpr double kGap = 30;
constexpr double kBendGap = 18;

using Lists = std::vector<std::vector<int>>;

uint64_t KeyOf(int upper, int lower) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(upper)) << 32) | static_cast<uint32_t>(lower);
}
using Conflicts = std::unordered_set<uint64_t>;  // (upper item, lower item)

std::vector<int> PositionsOf(const Lists& ranks, size_t items) {
  std::vector<int> positions(items);
  for (const auto& rank : ranks)
    for (size_t i = 0; i < rank.size(); ++i) positions[static_cast<size_t>(rank[i])] = static_cast<int>(i);
  return positions;
}

// Returns the bend above a bend, or -1 if there is none.
int InnerAbove(const Layered& layered, int item) {
  if (!layered.items[static_cast<size_t>(item)].bend()) return -1;
  const int upper = layered.above[static_cast<size_t>(item)].front();
  return layered.items[static_cast<size_t>(upper)].bend() ? upper : -1;
}

// Marks the edges in one rank that cross a piece of a long edge, which must stay straight.
void FindConflicts(const Layered& layered, const std::vector<int>& rank, size_t width_above,
                   const std::vector<int>& positions, Conflicts& conflicts) {
  int left = 0;
  size_t scanned = 0;
  for (size_t i = 0; i < rank.size(); ++i) {
    const int inner = InnerAbove(layered, rank[i]);
    if (inner < 0 && i + 1 < rank.size()) continue;
    const int right = inner >= 0 ? positions[static_cast<size_t>(inner)] : static_cast<int>(width_above);
    for (; scanned <= i; ++scanned) {
      if (InnerAbove(layered, rank[scanned]) >= 0) continue;
      for (const int upper : layered.above[static_cast<size_t>(rank[scanned])]) {
        const int at = positions[static_cast<size_t>(upper)];
        if (at < left || at > right) conflicts.insert(KeyOf(upper, rank[scanned]));
      }
    }
    left = right;
  }
}

// One of the four assignments. `ranks` are in the order of its direction.
class Assignment {
 public:
  Assignment(const Layered& layered, Lists ranks, bool from_above, const Conflicts& conflicts)
      : layered_(layered),
        items_(layered.items),
        ranks_(std::move(ranks)),
        neighbors_(from_above ? layered.above : layered.below),
        opposite_(from_above ? layered.below : layered.above),
        from_above_(from_above),
        conflicts_(conflicts),
        positions_(PositionsOf(ranks_, items_.size())),
        root_(items_.size()),
        next_(items_.size()) {
    for (size_t i = 0; i < items_.size(); ++i) root_[i] = next_[i] = static_cast<int>(i);
  }

  std::vector<double> Run() {
    for (const auto& rank : ranks_) Align(rank);
    return Pack();
  }

 private:
  // Nothing is above it, or nothing is below.
  bool IsEnd(int item) const {
    return layered_.above[static_cast<size_t>(item)].empty() ||
           layered_.below[static_cast<size_t>(item)].empty();
  }

  // The neighbors to align with: those on the way from inputs to outputs, if there are any. Ends leave the
  // place to them, so that what most edges pass through is straight.
  std::vector<int> NearOf(int item) const {
    std::vector<int> near = neighbors_[static_cast<size_t>(item)];
    const auto is_end = [&](int other) { return IsEnd(other); };
    if (!std::ranges::all_of(near, is_end)) std::erase_if(near, is_end);
    if (IsEnd(item))
      std::erase_if(near, [&](int other) {
        return !std::ranges::all_of(opposite_[static_cast<size_t>(other)], is_end);
      });
    return near;
  }

  // Joins each item with the median of its neighbors, unless that would cross a block.
  void Align(const std::vector<int>& rank) {
    int taken = -1;
    for (const int item : rank) {
      std::vector<int> near = NearOf(item);
      if (near.empty()) continue;
      std::ranges::sort(near, {}, [&](int other) { return positions_[static_cast<size_t>(other)]; });
      for (size_t m = (near.size() - 1) / 2; m <= near.size() / 2; ++m) {
        const int other = near[m];
        const int at = positions_[static_cast<size_t>(other)];
        const auto key = from_above_ ? KeyOf(other, item) : KeyOf(item, other);
        if (next_[static_cast<size_t>(item)] != item || taken >= at || conflicts_.contains(key)) continue;
        next_[static_cast<size_t>(other)] = item;
        next_[static_cast<size_t>(item)] = root_[static_cast<size_t>(item)] =
            root_[static_cast<size_t>(other)];
        taken = at;
      }
    }
  }

  double Distance(int left, int right) const {
    const auto& a = items_[static_cast<size_t>(left)];
    const auto& b = items_[static_cast<size_t>(right)];
    return (a.width + b.width) / 2 + (a.bend() || b.bend() ? kBendGap : kGap);
  }

  struct Side {
    int other;
    double distance;
  };
  // By block (its root): the blocks directly to the right, with the least distance.
  std::vector<std::vector<Side>> BlocksToTheRight() const {
    std::unordered_map<uint64_t, double> distances;
    for (const auto& rank : ranks_)
      for (size_t i = 1; i < rank.size(); ++i) {
        double& distance = distances[KeyOf(RootOf(rank[i - 1]), RootOf(rank[i]))];
        distance = std::max(distance, Distance(rank[i - 1], rank[i]));
      }
    std::vector<std::vector<Side>> right(items_.size());
    for (const auto& [key, distance] : distances)
      right[key >> 32].push_back({static_cast<int>(key & UINT32_MAX), distance});
    return right;
  }

  // Blocks, each after those to the left of it.
  static std::vector<int> Sorted(const std::vector<std::vector<Side>>& right) {
    std::vector<int> waits(right.size());
    std::vector<int> sorted;
    for (const auto& sides : right)
      for (const Side& side : sides) ++waits[static_cast<size_t>(side.other)];
    for (size_t i = 0; i < right.size(); ++i)
      if (waits[i] == 0) sorted.push_back(static_cast<int>(i));
    for (size_t i = 0; i < sorted.size(); ++i)
      for (const Side& side : right[static_cast<size_t>(sorted[i])])
        if (--waits[static_cast<size_t>(side.other)] == 0) sorted.push_back(side.other);
    return sorted;
  }

  // As far left as possible, then as far right as the blocks to the right permit.
  std::vector<double> Pack() const {
    const auto right = BlocksToTheRight();
    const std::vector<int> sorted = Sorted(right);
    std::vector<double> x(items_.size());
    for (const int block : sorted)
      for (const Side& side : right[static_cast<size_t>(block)]) {
        double& other = x[static_cast<size_t>(side.other)];
        other = std::max(other, x[static_cast<size_t>(block)] + side.distance);
      }
    for (auto block = sorted.rbegin(); block != sorted.rend(); ++block) {
      double most = 1e300;
      for (const Side& side : right[static_cast<size_t>(*block)])
        most = std::min(most, x[static_cast<size_t>(side.other)] - side.distance);
      if (most < 1e300) x[static_cast<size_t>(*block)] = std::max(x[static_cast<size_t>(*block)], most);
    }
    std::vector<double> out(items_.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = x[static_cast<size_t>(root_[i])];
    return out;
  }

  int RootOf(int item) const { return root_[static_cast<size_t>(item)]; }

  const Layered& layered_;
  const std::vector<Layered::Item>& items_;
  const Lists ranks_;
  const Lists &neighbors_, &opposite_;  // in the direction, and against it
  const bool from_above_;
  const Conflicts& conflicts_;
  const std::vector<int> positions_;
  std::vector<int> root_, next_;
};

struct Extent {
  double low = 1e300;
  double high = -1e300;
  double width() const { return high - low; }
};

Extent ExtentOf(const Layered& layered, const std::vector<double>& x) {
  Extent out;
  for (size_t i = 0; i < x.size(); ++i) {
    out.low = std::min(out.low, x[i] - layered.items[i].width / 2);
    out.high = std::max(out.high, x[i] + layered.items[i].width / 2);
  }
  return out;
}

std::vector<double> Assign(const Layered& layered, bool from_above, bool to_left,
                           const Conflicts& conflicts) {
  Lists ranks = layered.ranks;
  if (!from_above) std::ranges::reverse(ranks);
  if (!to_left)
    for (auto& rank : ranks) std::ranges::reverse(rank);
  std::vector<double> x = Assignment(layered, std::move(ranks), from_above, conflicts).Run();
  if (!to_left)
    for (double& value : x) value = -value;
  return x;
}

}  // namespace

std::vector<double> Columns(const Layered& layered) {
  if (layered.items.empty()) return {};
  const std::vector<int> positions = PositionsOf(layered.ranks, layered.items.size());
  Conflicts conflicts;
  for (size_t r = 1; r < layered.ranks.size(); ++r)
    FindConflicts(layered, layered.ranks[r], layered.ranks[r - 1].size(), positions, conflicts);
  std::array<std::vector<double>, 4> all;
  std::array<Extent, 4> extents;
  for (size_t i = 0; i < 4; ++i) {
    all[i] = Assign(layered, i / 2 == 0, i % 2 == 0, conflicts);
    extents[i] = ExtentOf(layered, all[i]);
  }
  const Extent narrowest = *std::ranges::min_element(extents, {}, &Extent::width);
  for (size_t i = 0; i < 4; ++i) {
    const double shift = i % 2 == 0 ? narrowest.low - extents[i].low : narrowest.high - extents[i].high;
    for (double& x : all[i]) x += shift;
  }
  std::vector<double> out(layered.items.size());
  for (size_t v = 0; v < out.size(); ++v) {
    std::array<double, 4> x = {all[0][v], all[1][v], all[2][v], all[3][v]};
    std::ranges::sort(x);
    out[v] = (x[1] + x[2]) / 2;
  }
  return out;
}

}  // namespace fusebox::cli::layout
