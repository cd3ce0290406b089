// SPDX-License-Identifier: Apache-2.0
// Models of LSTM layers, their results, and the number of weights packed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/model.h"
#include "host/session.h"
#include "tests/plugins/kept_weights/counted_packs.h"

namespace fusebox::kept_weights {

inline constexpr int64_t kSteps = 3, kInputs = 21;

// Stacked layers with these numbers of cells. Models with one seed have equal weights.
std::unique_ptr<Module> LstmModule(std::vector<int64_t> cells, uint32_t seed = 1);

// The rnn plugin (linked in) and, by default, the xnnpack plugin.
std::shared_ptr<Registry> MakeRegistry(bool with_store = true);
bool StoreIsLoaded(const Registry& registry);

// `cache`: a weight_cache_path; empty: none.
ModelOptions OptionsOf(std::shared_ptr<Registry> registry, const std::string& cache);
std::shared_ptr<const Model> Open(std::unique_ptr<Module> module, const ModelOptions& options);
std::vector<float> Answer(const std::shared_ptr<const Model>& model);

// Number of packs by a new process that runs the module; -1: the result differs from `expected`.
int PacksInChild(const std::string& cache, std::vector<int64_t> cells, const std::vector<float>& expected);

class KeptWeights : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::vector<std::string> FilesBelow(const std::string& suffix) const;
  std::string directory_;
};

}  // namespace fusebox::kept_weights
