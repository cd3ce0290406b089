// SPDX-License-Identifier: Apache-2.0
#include "converter/convert.h"
#include "samples/models/models.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace {

// Their weights are the same, so that one checkpoint serves all of them.
constexpr const char* kModels[] = {"keras_lstm",          "lstm_time_major",     "lstm_backwards",
                                   "lstm_sequences",      "lstm_last_step",      "lstm_states",
                                   "lstm_computed_state", "lstm_constant_state", "lstm_four_gates"};

std::shared_ptr<Registry> BuiltIn() {
  static const auto registry = [] {
    Config config;
    config.search_default_path = false;
    auto made = Registry::Create(config);
    FUSEBOX_CHECK(made.has_value());
    return *made;
  }();
  return registry;
}

}  // namespace

void RunSavedModel(std::span<const std::byte> bytes) {
  static const std::string dir = SampleDir("keras_lstm");
  WriteScratch(dir + "/saved_model.pb", bytes);
  auto conversion = converter::FromSavedModel(dir);
  conversion.options.registry = BuiltIn();
  if (const auto converted = conversion.Convert())
    FUSEBOX_CHECK(converted->Write(ScratchDir() + "/out.tflite").has_value());
}

std::vector<std::string> SavedModelSeeds() {
  std::vector<std::string> seeds;
  for (const char* name : kModels) seeds.push_back(Contents(SampleDir(name) + "/saved_model.pb"));
  for (const auto& model : samples::SampleModels())
    seeds.push_back(Contents(SampleDir(std::string(model.name)) + "/saved_model.pb"));
  return seeds;
}

}  // namespace fusebox::fuzz
