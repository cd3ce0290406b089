// SPDX-License-Identifier: Apache-2.0
// Small Keras models with random weights, at least one per layer class.
#pragma once

#include <string>
#include <vector>

#include "tests/testing/keras_writer.h"

namespace fusebox::testing {

struct KerasCase {
  std::string name;
  KerasFixture model;
};

// {"class_name": ..., "config": {"name": "layer", ...}}
nlohmann::json LayerEntry(const std::string& class_name, nlohmann::json config,
                          const std::string& name = "layer");
// A Sequential of an input and these layers.
nlohmann::json SequentialConfig(const std::vector<int64_t>& input, const nlohmann::json& layers,
                                const std::string& dtype = "float32");
// Random values of this shape; variances are positive.
KerasWeight RandomWeight(const std::string& name, const std::vector<int64_t>& shape);
using WeightShapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;
KerasCase OneLayer(const std::string& name, const std::string& class_name, const nlohmann::json& config,
                   const std::vector<int64_t>& input, const WeightShapes& weights = {},
                   const std::string& dtype = "float32");

// Cases whose layers TensorFlow.js supports too.
std::vector<KerasCase> CommonCases();     // dense, shapes, activations, merging
std::vector<KerasCase> SpatialCases();    // convolutions, pooling, padding
std::vector<KerasCase> RecurrentCases();  // and masks

}  // namespace fusebox::testing
