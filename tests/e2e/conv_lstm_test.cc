// SPDX-License-Identifier: Apache-2.0
// ConvLSTM layers of SavedModels: loops of convolutions that are recognized by what they compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/testing/models/conv_lstm.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Options = test_models::ConvLstmOptions;
using Twist = Options::Twist;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

struct LoopForm {
  const char* name;
  Options options;
};

Result<Written> ConvertLayer(const Options& layer, converter::Composites composites) {
  const std::string dir = TestDir() + "/conv_lstm";
  FUSEBOX_TRY(test_models::WriteConvLstm(dir, 7, layer));
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Plugins());
  options.composites = composites;
  options.verify = converter::Verification::kStrict;
  return Convert(dir, options, composites == converter::Composites::kFuse ? "fused" : "loop");
}

Result<Tensors> RunLayer(const std::string& path, const Options& layer) {
  FUSEBOX_ASSIGN(const auto session, Open(path, *Plugins()));
  std::vector<int64_t> dims = {layer.batch < 0 ? 2 : layer.batch, layer.steps < 0 ? 4 : layer.steps};
  dims.insert(dims.end(), layer.size.begin(), layer.size.end());
  dims.push_back(layer.channels);
  const Tensor x = Random({DType::kF32, Shape(dims)}, 5);
  FUSEBOX_TRY(Invoke(*session, {x}));
  return Invoke(*session, {x});
}

class ConvLstmOfSavedModel : public ::testing::TestWithParam<LoopForm> {};

TEST_P(ConvLstmOfSavedModel, IsOneFusedOpThatAgreesWithItsLoop) {
  const Options& layer = GetParam().options;
  const auto fused = ConvertLayer(layer, converter::Composites::kFuse);
  ASSERT_OK(fused);
  ASSERT_EQ(fused->report.sites.size(), 1u) << ::testing::PrintToString(fused->report.notes);
  const SiteReport& site = fused->report.sites[0];
  EXPECT_EQ(site.composite, "keras.conv_lstm");
  EXPECT_THAT(site.location, StartsWith("sequential/conv_lstm"));
  EXPECT_TRUE(site.fused) << site.why;
  EXPECT_THAT(site.verification, StartsWith("agrees (f64"));
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module)["fusebox.conv_lstm"], 1);
  EXPECT_THAT(UnusedConstants(**module), IsEmpty());

  const auto loop = ConvertLayer(layer, converter::Composites::kInline);
  ASSERT_OK(loop);
  const auto a = RunLayer(fused->path, layer), b = RunLayer(loop->path, layer);
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_EQ(Difference(*a, *b, 2e-6, 2e-6), "");
}

INSTANTIATE_TEST_SUITE_P(
    Loops, ConvLstmOfSavedModel,
    ::testing::Values(
        LoopForm{"Plane", {}}, LoopForm{"PlaneSequence", {.return_sequences = true, .return_state = true}},
        LoopForm{"PlaneOfKeras2", {.return_sequences = true, .hard_sigmoid = true, .keras2 = true}},
        LoopForm{"PlaneBackwards", {.batch = 2, .go_backwards = true, .return_sequences = true}},
        LoopForm{"PlaneAnyLength", {.steps = -1, .return_sequences = true}},
        LoopForm{"PlaneStride", {.stride = 2, .same = false, .return_state = true}},
        LoopForm{"PlaneDilation", {.dilation = 2, .return_state = true}},
        LoopForm{"PlaneRelu", {.relu = true, .use_bias = false}},
        LoopForm{"Line", {.size = {7}, .kernel = {3}, .return_sequences = true}},
        LoopForm{"LineStride", {.size = {7}, .kernel = {3}, .batch = 1, .stride = 2, .return_state = true}},
        LoopForm{"LineOfKeras2", {.size = {7}, .kernel = {3}, .keras2 = true}},
        LoopForm{"Volume", {.size = {3, 4, 2}, .kernel = {2, 3, 1}, .return_sequences = true}},
        LoopForm{"VolumeStates", {.size = {3, 4, 2}, .kernel = {2, 3, 2}, .batch = 1, .return_state = true}}),
    [](const auto& info) { return std::string(info.param.name); });

// With Winograd's filtering (channels), and 8-bit weights.
TEST(ConvLstmWithManyChannels, KeepsItsOutputsWith8BitWeights) {
  const Options layer{
      .size = {9, 7}, .kernel = {3, 3}, .channels = 16, .filters = 16, .return_sequences = true};
  const auto fused = ConvertLayer(layer, converter::Composites::kFuse),
             loop = ConvertLayer(layer, converter::Composites::kInline);
  ASSERT_OK(fused);
  ASSERT_OK(loop);
  EXPECT_THAT(fused->report.sites.at(0).verification, StartsWith("agrees (f64"));
  converter::Options options;
  options.registry = *Plugins();
  options.quantization = converter::Quantization::kDynamic;
  const auto bytes = Convert(TestDir() + "/conv_lstm", options, "bytes");
  ASSERT_OK(bytes);
  const auto module = tflite::ReadFile(bytes->path);
  ASSERT_OK(module);
  const Function& main = *(*module)->functions[0];
  int stored = 0;
  for (const auto& node : main.nodes)
    if (node->name == "fusebox.conv_lstm")
      for (const size_t weights : {3u, 4u})
        stored += main.value(node->operands[weights]).type.dtype == DType::kI8;
  EXPECT_EQ(stored, 2) << ToText(**module);
  const auto a = RunLayer(fused->path, layer), b = RunLayer(loop->path, layer),
             c = RunLayer(bytes->path, layer);
  ASSERT_OK(a);
  ASSERT_OK(b);
  ASSERT_OK(c);
  EXPECT_EQ(Difference(*a, *b, 2e-6, 2e-6), "");
  EXPECT_EQ(Difference(*c, *b, 0.01, 0), "");
}

struct OtherLoop {
  const char* name;
  Options options;
  const char* note;
};

class OtherConvLstm : public ::testing::TestWithParam<OtherLoop> {};

TEST_P(OtherConvLstm, StaysALoopWithTheReason) {
  const Options& layer = GetParam().options;
  const auto fused = ConvertLayer(layer, converter::Composites::kFuse);
  ASSERT_OK(fused);
  EXPECT_THAT(fused->report.sites, IsEmpty());
  EXPECT_THAT(::testing::PrintToString(fused->report.notes), HasSubstr(GetParam().note));
  const auto ran = RunLayer(fused->path, layer);
  ASSERT_OK(ran);
}

INSTANTIATE_TEST_SUITE_P(
    Loops, OtherConvLstm,
    ::testing::Values(
        OtherLoop{"DilatedState",
                  {.dilation = 2, .twist = Twist::kDilatedState},
                  "its state is convolved by another window"},
        OtherLoop{"OtherKernel", {.twist = Twist::kOtherKernel}, "its gates differ in their"},
        OtherLoop{"Peephole", {.twist = Twist::kPeephole}, "is no convolution with a constant kernel"},
        OtherLoop{"ScaledInput", {.twist = Twist::kScaledInput}, "its gates read two inputs"},
        OtherLoop{"TimeMajor",
                  {.batch = 3, .twist = Twist::kTimeMajor},
                  "a ConvLSTM over a sequence [steps, batch, ..]"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusebox::testing
