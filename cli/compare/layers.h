// SPDX-License-Identifier: Apache-2.0
// Compares the values inside two models, node by node, to find where they begin to differ.
//
// A copy of each model has the results of all nodes of the compared function as outputs, so delegates cannot
// fuse across them. Values inside called functions, loops and branches are not compared.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/base/opened.h"
#include "host/graph/values.h"

namespace fusebox::cli {

// A result of a node. Fields of the second model are empty if it has no such value.
struct Layer {
  size_t node = 0;       // index in the function of the first model
  std::string op, name;  // of the value in the first model
  std::string other;     // name of the value in the second model; "" if it has none
  bool matched = false;  // by name; else by position: the same op and type at the same index
  Type type;
  Difference difference;  // of real numbers: quantized values are dequantized, f32 and f64 compare
  double error = 0;       // rms of the difference / rms of the second model's values, over all runs
};

// Opened for the comparison.
struct Exposed {
  Opened opened;
  std::vector<Layer> layers;                         // of this model, in node order
  std::vector<size_t> outputs;                       // by layer: the output that has its value
  std::vector<std::shared_ptr<const Quant>> quants;  // by layer
};
Result<Exposed> Expose(const Opened& model, ModelOptions options, const SessionOptions& session);

// Returns for each layer of `a` the index of its partner in `b`, or -1 if it has none.
std::vector<int> MatchLayers(std::vector<Layer>& a, std::span<const Layer> b);

// Adds the values of the last runs of both. `squares`: by layer, sums of squares, for `error`.
struct Squares {
  double difference = 0;
  double reference = 0;
};
Status AddLayers(Exposed& a, const Exposed& b, std::span<const int> partners, const Tolerance&,
                 std::vector<Squares>& squares);

std::string ToText(std::span<const Layer>, const Tolerance&);
nlohmann::ordered_json ToJson(std::span<const Layer>);

}  // namespace fusebox::cli
