// SPDX-License-Identifier: Apache-2.0
// Small Keras models, layer by layer: what they become gives what TensorFlow.js gives.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/peers/tfjs.h"
#include "tests/testing/keras_cases.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

struct Ran {
  KerasModel model;
  Tensors outputs;
};

// The case as an .h5 file, converted and run here.
Result<Ran> RunHere(const KerasCase& one, const std::shared_ptr<Registry>& registry,
                    converter::Composites composites) {
  const std::string file = TestDir() + "/case.h5";
  WriteH5(file, one.model);
  converter::Options options;
  options.registry = registry;
  options.composites = composites;
  FUSEBOX_ASSIGN(const Written written, Convert(file, options, "case"));
  FUSEBOX_ASSIGN(const auto session, Open(written.path, registry));
  const Tensors inputs = RandomInputs(*session, 5);
  FUSEBOX_ASSIGN(Tensors outputs, Invoke(*session, inputs));
  FUSEBOX_ASSIGN(KerasModel model, ReadKeras(file, inputs));
  return Ran{std::move(model), std::move(outputs)};
}

void AgreeWithTfjs(const std::vector<KerasCase>& cases, converter::Composites composites) {
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  std::vector<KerasModel> models;
  std::vector<Tensors> ours;
  for (const KerasCase& one : cases) {
    auto ran = RunHere(one, *registry, composites);
    ASSERT_TRUE(ran) << one.name << ": " << ran.error().message;
    models.push_back(std::move(ran->model));
    ours.push_back(std::move(ran->outputs));
  }
  const auto theirs = RunTfjs(models);
  ASSERT_TRUE(theirs) << theirs.error().message;
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& result = (*theirs)[i];
    if (!result) ADD_FAILURE() << cases[i].name << ": " << result.error().message;
    else EXPECT_EQ(Difference(ours[i], *result, 1e-5, 1e-4), "") << cases[i].name;
  }
  std::cout << cases.size() << " models beside tfjs\n";
}

TEST(KerasLayers, CommonOnesAgreeWithTfjs) {
  FUSEBOX_NEEDS_TFJS();
  AgreeWithTfjs(CommonCases(), converter::Composites::kFuse);
}

TEST(KerasLayers, SpatialOnesAgreeWithTfjs) {
  FUSEBOX_NEEDS_TFJS();
  AgreeWithTfjs(SpatialCases(), converter::Composites::kFuse);
}

TEST(KerasLayers, RecurrentOnesAgreeWithTfjsFused) {
  FUSEBOX_NEEDS_TFJS();
  AgreeWithTfjs(RecurrentCases(), converter::Composites::kFuse);
}

TEST(KerasLayers, RecurrentOnesAgreeWithTfjsAsLoops) {
  FUSEBOX_NEEDS_TFJS();
  AgreeWithTfjs(RecurrentCases(), converter::Composites::kInline);
}

}  // namespace
}  // namespace fusebox::testing
