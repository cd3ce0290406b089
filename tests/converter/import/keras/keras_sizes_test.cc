// SPDX-License-Identifier: Apache-2.0
// Layers and inputs of Keras files that ask for more than can be: refused with the layer, by the command with
// status 2 and nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/testing/keras_cases.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kHuge = int64_t{1} << 40, kLargest = INT64_MAX;

struct Oversized {
  const char* layer;
  json config;
  std::vector<int64_t> input;
};

const Oversized kOversized[] = {
    {"RepeatVector", {{"n", kHuge}}, {1, 4}},
    {"RepeatVector", {{"n", -kHuge}}, {1, 4}},
    {"UpSampling1D", {{"size", kHuge}}, {1, 4, 2}},
    {"UpSampling2D", {{"size", {kLargest, 2}}}, {1, 4, 4, 2}},
    {"UpSampling3D", {{"size", {2, 2, kLargest}}}, {1, 4, 4, 4, 2}},
    {"ZeroPadding1D", {{"padding", {kLargest, kLargest}}}, {1, 4, 2}},
    {"ZeroPadding2D", {{"padding", {{0, kHuge}, {0, 0}}}}, {1, 4, 4, 2}},
    {"Cropping1D", {{"cropping", {kLargest, 1}}}, {1, 4, 2}},
    {"Reshape", {{"target_shape", {kHuge, kHuge, kHuge}}}, {1, 4}},
    {"Reshape", {{"target_shape", {-1, kLargest}}}, {1, 4}},
    {"Permute", {{"dims", {kLargest, 1}}}, {1, 4, 2}},
    {"MaxPooling2D", {{"pool_size", kHuge}, {"strides", kHuge}}, {1, 4, 4, 2}},
    {"Flatten", json::object(), {1, kHuge, kHuge, kHuge}},
    {"Dense", {{"units", kLargest}}, {1, 4}},
    {"Conv2D", {{"filters", kHuge}, {"kernel_size", {kHuge, kHuge}}}, {1, 4, 4, 2}},
    {"LSTM", {{"units", kLargest / 2}}, {1, 4, 2}},
    {"Embedding", {{"input_dim", kHuge}, {"output_dim", kHuge}}, {1, 4}},
};

class Oversize : public ::testing::TestWithParam<Oversized> {};

TEST_P(Oversize, IsRefusedWithTheLayer) {
  const Oversized& o = GetParam();
  const std::string file = TestDir() + "/model.h5", out = TestDir() + "/none.tflite";
  WriteH5(file, OneLayer("", o.layer, o.config, o.input).model);
  const CommandResult command = Fusebox({"convert", file, "-o", out});
  EXPECT_EQ(command.status, 2) << command.err;
  EXPECT_THAT(command.err, AllOf(HasSubstr("model.h5: "), AnyOf(HasSubstr("layer"), HasSubstr("input")),
                                 Not(HasSubstr("internal"))));
  EXPECT_FALSE(std::filesystem::exists(out));
}

INSTANTIATE_TEST_SUITE_P(All, Oversize, ::testing::ValuesIn(kOversized), [](const auto& info) {
  return info.param.layer + std::string("_") + std::to_string(info.index);
});

}  // namespace
}  // namespace fusebox::testing
