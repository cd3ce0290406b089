// SPDX-License-Identifier: Apache-2.0
// Times of one node of a session.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fusebox {

// A piece of a node that its kernel or delegate measured itself (fusebox.profile/1). Sums over all runs.
struct SpanTime {
  std::string name;
  uint32_t worker = 0;
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t bytes = 0;
  uint64_t flops = 0;
};

struct NodeTime {
  std::string function;  // of the model
  size_t node = 0;       // index in the function; of a partition: of its first node
  size_t nodes = 1;      // of a partition
  std::string op;        // "CONV_2D", the name of a custom op, "PARTITION"
  std::string name;      // in the model; may be empty
  std::string runner;    // as in Placement: plugin id, "xnnpack (partition 0)", "host", "body"; the last one
  uint64_t runs = 0;
  uint64_t total_ns = 0;  // calls, loops and bodies include the nodes that they run
  // Amounts of one run, with its last shapes: bytes of operands and results; arithmetic operations
  // (ArithmeticOps), if the types of the model tell, else 0.
  uint64_t bytes = 0;
  uint64_t flops = 0;
  double estimate_ns = -1;  // of one run on one thread (fusebox.cost/1); negative: none
  std::vector<SpanTime> spans;
};

}  // namespace fusebox
