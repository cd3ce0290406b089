// SPDX-License-Identifier: Apache-2.0
// Keras files for tests, in both containers, written as Keras writes them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "host/graph/types.h"

namespace fusebox::testing {

struct KerasWeight {
  std::string name;  // "kernel"
  Tensor value;
};
// By layer of the whole model, in Keras' order.
using KerasWeights = std::vector<std::pair<std::string, std::vector<KerasWeight>>>;

struct KerasFixture {
  nlohmann::json config;  // {"class_name", "config"}
  KerasWeights weights;
  std::string version = "2.9.0";
};

// Datasets are "<layer>/<layer>/<weight>:0" below model_weights, as of Keras 2; Keras 3 leaves out the
// number.
void WriteH5(const std::string& path, const KerasFixture& fixture);
// `weights` by their path in model.weights.h5.
void WriteKeras(const std::string& path, const nlohmann::json& config,
                const std::map<std::string, Tensor>& weights, const std::string& version = "3.3.3");
// The same weights as Keras 2.15 names them on Windows: up to "/vars/", names are joined by backslashes,
// which makes one group of the root of them. With `last_only`, as versions do that clean up half of the
// paths.
std::map<std::string, Tensor> NamedOnWindows(const std::map<std::string, Tensor>& weights,
                                             bool last_only = false);
// An archive of the given members.
void WriteZip(const std::string& path, const std::map<std::string, std::string>& members);

}  // namespace fusebox::testing
