// SPDX-License-Identifier: Apache-2.0
// Tests the checks before a kernel is initialized, and the limits that end opening early.
#include <gmock/gmock.h>

#include "tests/host/session/fixture.h"

namespace fusebox::session_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status WhyNot(std::unique_ptr<Module> module, ModelOptions options = {}) {
  options.registry = ProbeRegistry();
  options.delegates.emplace();
  const auto model = Model::FromModule(std::move(module), options);
  return model ? Status() : std::unexpected(model.error());
}

Attrs WindowOptions() {
  Attrs attrs;
  attrs.Set("padding", "SAME");
  attrs.Set("stride_h", 1);
  attrs.Set("stride_w", 1);
  return attrs;
}

std::shared_ptr<const Quant> OneScale() {
  return std::make_shared<const Quant>(
      Quant{.scales = std::vector{1.0f}, .zero_points = std::vector<int64_t>{0}});
}

// x f32[1,2,2,3] -> RELU, declared as f32[`declared`] -> CONV_2D of 1 x 1.
std::unique_ptr<Module> Convolution(std::vector<int64_t> declared, Type filter) {
  auto module = std::make_unique<Module>();
  module->source = "conv.tflite";
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(run::F32({1, 2, 2, 3}), "x");
  const ValueId relu = f.AddNode(Op::kRelu, {x}, {run::F32(std::move(declared))}).results[0];
  const size_t size = *ByteSize(filter);
  const auto ones = [size](std::span<std::byte> bytes) {
    for (size_t i = 0; i + 4 <= size; i += 4) bytes[i + 3] = std::byte{0x40};  // 2.0f; as i8, 0 0 0 64
  };
  const ValueId weights = f.AddConst(filter, Buffer::Make(size, ones));
  if (filter.dtype == DType::kI8) f.value(weights).quant = OneScale();
  f.outputs =
      f.AddNode(Op::kConv2D, {relu, weights, kNoValue}, {run::F32({1, 2, 2, 1})}, WindowOptions()).results;
  return module;
}

// Its constructor divides by the last dim of the filter.
TEST(Opening, ChecksANodeBeforeItsKernelIsInitialized) {
  for (const DType dtype : {DType::kF32, DType::kI8}) {
    SCOPED_TRACE(Name(dtype));
    for (const auto& dims : std::vector<std::vector<int64_t>>{{1, 1, 1, 0}, {}, {3}, {1, 0, 1, 3}}) {
      const Status status = WhyNot(Convolution({1, 2, 2, 3}, {dtype, Shape(dims)}));
      ASSERT_FALSE(status) << ToString(Shape(dims));
      EXPECT_EQ(status.error().code, Code::kInvalid) << status.error().message;
      EXPECT_THAT(status.error().message, HasSubstr("CONV_2D"));
      EXPECT_THAT(status.error().message, HasSubstr("operand 1"));
    }
  }
}

TEST(Opening, TakesShapesOfTheFileForHints) {
  const auto module = [] { return Convolution({1, 2, 2, 5}, {DType::kF32, Shape({1, 1, 1, 3})}); };
  const auto session = Started(Opened(module()));
  ASSERT_TRUE(session->SetInput(0, {run::F32({1, 2, 2, 3}), Buffer::Of<float>(std::vector<float>(12, 1))}));
  const Status ran = session->Run();
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_THAT(Output(*session), ElementsAre(6, 6, 6, 6));
}

// Constructors pack constant weights, whose shape is known.
TEST(Opening, OfQuantizedWeightsThatAreComputed) {
  for (const Op op : {Op::kConv2D, Op::kDepthwiseConv2D, Op::kFullyConnected, Op::kBatchMatmul}) {
    auto module = std::make_unique<Module>();
    Function& f = module->Add("main");
    const ValueId x = f.AddInput({DType::kF32, Shape()}), weights = f.AddInput({DType::kI8, Shape()});
    f.value(weights).quant = OneScale();
    std::vector<ValueId> operands = {x, weights};
    if (op != Op::kBatchMatmul) operands.push_back(kNoValue);
    f.outputs = f.AddNode(op, operands, {Type{DType::kF32, Shape()}}, WindowOptions()).results;
    const Status status = WhyNot(std::move(module));
    EXPECT_TRUE(status) << Name(op) << ": " << status.error().message;
  }
}

// A constructor that polls as long as it is not cancelled.
std::unique_ptr<Module> Polling() {
  auto module = Row({"test.made"});
  module->functions[0]->nodes[0]->attrs.Set("poll", 1);
  return module;
}

TEST(Opening, EndsAtItsTimeLimit) {
  const Status status = WhyNot(Polling(), {.time_limit_ms = 1});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled);
  EXPECT_THAT(status.error().message, testing::StartsWith("row.tflite: "));
  EXPECT_THAT(status.error().message, HasSubstr(": it took longer than its time limit of 1 ms"));
  EXPECT_EQ(test_made, 0);
  EXPECT_TRUE(WhyNot(Row({"test.made"}), {.time_limit_ms = INT64_MAX}));
}

TEST(Opening, EndsWhenAnotherThreadCancelsIt) {
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::thread other([&] { *cancel = true; });
  const Status status = WhyNot(Polling(), {.cancel = cancel});
  other.join();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled) << status.error().message;
}

TEST(Opening, EndsAtTheNextNode) {
  const auto cancel = std::make_shared<std::atomic<bool>>(true);
  const Status status = WhyNot(Row({"test.twice"}), {.cancel = cancel});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled);
  EXPECT_EQ(status.error().message, "row.tflite: opening the model was cancelled");
}

}  // namespace
}  // namespace fusebox::session_test
