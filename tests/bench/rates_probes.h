// SPDX-License-Identifier: Apache-2.0
// Small nets that rates_bench measures, and the work of each.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "host/graph/graph.h"
#include "plugins/math/cost/rates.h"

namespace fusebox::bench {

inline constexpr int kRun = math::kItems;  // a run of a session, which no estimate counts
inline constexpr int kUnknowns = math::kItems + 1;

// One net, the work of its nodes for kernels and for XNNPACK, and the times that were measured.
struct Probe {
  std::string name;
  std::unique_ptr<Module> module;
  std::array<double, kUnknowns> kernels{}, xnnpack{};
  double kernels_ns = 0, xnnpack_ns = 0;
};

// Nets of one or a few equal nodes, of reproducible shapes that are evenly spread on a logarithmic scale.
std::vector<Probe> Probes();

// Nodes of XNNPACK and of kernels, in turns or one group after the other.
std::unique_ptr<Module> MixedNet(bool alternate, int nodes_of_each);

}  // namespace fusebox::bench
