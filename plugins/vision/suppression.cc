// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/suppression.h"

#include <algorithm>
#include <numeric>

namespace fusebox::vision {
namespace {

float Area(const Box& box) { return (box.bottom - box.top) * (box.right - box.left); }

// NaN is below all numbers.
struct Larger {
  std::span<const float> values;
  bool operator()(int32_t a, int32_t b) const {
    const float x = values[static_cast<size_t>(a)];
    const float y = values[static_cast<size_t>(b)];
    if (x > y) return true;
    if (x < y) return false;
    const bool x_counts = x == x;
    const bool y_counts = y == y;
    return x_counts != y_counts ? x_counts : a < b;
  }
};

}  // namespace

float Overlap(const Box& a, const Box& b) {
  const float area_a = Area(a);
  const float area_b = Area(b);
  if (!(area_a > 0) || !(area_b > 0)) return 0;
  const float height = std::max(std::min(a.bottom, b.bottom) - std::max(a.top, b.top), 0.0f);
  const float width = std::max(std::min(a.right, b.right) - std::max(a.left, b.left), 0.0f);
  return height * width / (area_a + area_b - height * width);
}

void SortLargest(std::span<const float> values, int64_t count, int32_t* order) {
  std::iota(order, order + values.size(), 0);
  std::partial_sort(order, order + count, order + values.size(), Larger{values});
}

int64_t Suppress(std::span<const Box> boxes, std::span<const float> scores, const Suppression& options,
                 int32_t* order, int32_t* kept) {
  int64_t candidates = 0;
  int64_t count = 0;
  for (size_t i = 0; i < boxes.size(); ++i)
    if (scores[i] >= options.least_score) order[candidates++] = static_cast<int32_t>(i);
  std::sort(order, order + candidates, Larger{scores});
  // Compares each box with the few kept ones, instead of each kept box with all.
  for (int64_t i = 0; i < candidates && count < options.most; ++i) {
    const Box& box = boxes[static_cast<size_t>(order[i])];
    const bool hidden = std::any_of(kept, kept + count, [&](int32_t k) {
      return Overlap(boxes[static_cast<size_t>(k)], box) > options.most_overlap;
    });
    if (!hidden) kept[count++] = order[i];
  }
  return count;
}

}  // namespace fusebox::vision
