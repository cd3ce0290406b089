// SPDX-License-Identifier: Apache-2.0
// Composites of images and boxes whose bodies compute the same by plain ops: fused by the vision plugin,
// verified against the bodies, and the same as files that keep them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::StartsWith;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

struct Form {
  const char *sample, *op;
};

Result<Written> ConvertSample(const std::string& name, const std::vector<std::string>& plugins,
                              const char* tag) {
  FUSEBOX_ASSIGN(const std::string dir, Sample(name));
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Plugins(plugins));
  options.verify = converter::Verification::kStrict;
  return Convert(dir, options, tag);
}

class VisionSample : public ::testing::TestWithParam<Form> {};

TEST_P(VisionSample, IsOneOpThatAgreesWithItsBody) {
  const auto fused = ConvertSample(GetParam().sample, {"fusebox.vision"}, "fused"),
             plain = ConvertSample(GetParam().sample, {}, "plain");
  ASSERT_OK(fused);
  ASSERT_OK(plain);
  EXPECT_FALSE(fused->report.verification_failed);
  ASSERT_EQ(fused->report.sites.size(), 1u);
  EXPECT_TRUE(fused->report.sites[0].fused) << fused->report.sites[0].why;
  EXPECT_THAT(fused->report.sites[0].verification, StartsWith("agrees (f64"));
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module).at(GetParam().op), 1);
  EXPECT_LE((*module)->functions.front()->nodes.size(), 2u) << "an addition beside it";
  EXPECT_FALSE(OpsOf(**tflite::ReadFile(plain->path)).contains(GetParam().op));
  auto a = Open(fused->path, *Plugins({"fusebox.vision"})), b = Open(plain->path, *Plugins({}));
  ASSERT_OK(a);
  ASSERT_OK(b);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Tensors inputs = RandomInputs(**a, seed);
    const auto x = Invoke(**a, inputs), y = Invoke(**b, inputs);
    ASSERT_OK(x);
    ASSERT_OK(y);
    EXPECT_EQ(Difference(*x, *y), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, VisionSample,
                         ::testing::Values(Form{"non_max_suppression", "NON_MAX_SUPPRESSION_V4"},
                                           Form{"detection_post_process", "TFLite_Detection_PostProcess"},
                                           Form{"dense_image_warp", "DenseImageWarp"},
                                           Form{"max_unpooling", "MaxUnpooling2D"}),
                         [](const auto& info) { return std::string(info.param.sample); });

}  // namespace
}  // namespace fusebox::testing
