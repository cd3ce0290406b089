// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression: of overlapping boxes, keeps the one with the best score.
#pragma once

#include <cstdint>
#include <span>

namespace fusebox::vision {

struct Box {
  float top, left, bottom, right;
};

// Intersection over union; 0 for an empty box.
float Overlap(const Box& a, const Box& b);

// Writes the indices of the `count` largest values to order[0, count), descending; stable. `order` has room
// for all indices.
void SortLargest(std::span<const float> values, int64_t count, int32_t* order);

struct Suppression {
  float least_score = 0;  // boxes with lower scores are ignored
  float most_overlap = 0;
  int64_t most = 0;  // maximum number of kept boxes
};

// Writes the indices of the kept boxes to `kept`, best first, and returns their number. `order` has room for
// all boxes, `kept` for options.most.
int64_t Suppress(std::span<const Box> boxes, std::span<const float> scores, const Suppression& options,
                 int32_t* order, int32_t* kept);

}  // namespace fusebox::vision
