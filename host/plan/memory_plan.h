// SPDX-License-Identifier: Apache-2.0
// The arena of one segment of a planned function: which value is where, from which step to which. For people
// and tools; plain data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fusebox {

struct MemoryPlan {
  // A node in execution order: of the model, or a partition of a delegate.
  struct Step {
    std::string op;
    int node = -1;  // index in the function of the model; -1: a partition
  };
  struct Piece {
    std::string name;  // of the value; of scratch memory: empty
    size_t offset, bytes;
    size_t first, last;  // indices in `steps`
    bool scratch;
  };
  std::string function;  // of the model, or the name of a partition's function
  size_t bytes = 0;      // of the arena
  std::vector<Step> steps;
  std::vector<Piece> pieces;
};

}  // namespace fusebox
