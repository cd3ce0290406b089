// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression: of boxes that overlap, the one with the best score stays.
#pragma once

#include <cstdint>
#include <span>

namespace fusebox::vision {

struct Box {
  float top, left, bottom, right;
};

// Intersection over union; 0 where a box has no area.
float Overlap(const Box& a, const Box& b);

// The indices of the `count` largest values, largest first, in order[0, count); of equals the first one
// first. `order` has room for all.
void SortLargest(std::span<const float> values, int64_t count, int32_t* order);

struct Suppression {
  float least_score = 0;  // lower ones are no candidates
  float most_overlap = 0;
  int64_t most = 0;  // boxes that stay
};

// Writes the indices of the boxes that stay to `kept`, best first, and returns how many. `order` has room for
// an index per box, `kept` for options.most.
int64_t Suppress(std::span<const Box> boxes, std::span<const float> scores, const Suppression& options,
                 int32_t* order, int32_t* kept);

}  // namespace fusebox::vision
