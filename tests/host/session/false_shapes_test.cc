// SPDX-License-Identifier: Apache-2.0
// Files whose shapes differ from the ones that their ops give, found by the fuzz target `run`.
#include <gmock/gmock.h>

#include "tests/host/session/fixture.h"

namespace fusebox::session_test {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Session> SessionOf(std::unique_ptr<Module> module) {
  return Started(Opened(std::move(module)));
}

// A VAR_HANDLE of `type` as the output.
std::unique_ptr<Module> HandleOf(Type type) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  f.outputs = f.AddNode(Op::kVarHandle, {}, {std::move(type)}).results;
  return module;
}

TEST(FalseShapes, AHandleIsOneResource) {
  for (const Shape& shape : {Shape(), Shape({-1}), Shape({0}), Shape({3})}) {
    const auto session = SessionOf(HandleOf({DType::kResource, shape}));
    const Status ran = session->Run();
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(session->output(0)->data.size(), 8) << ToString(shape);
  }
  ModelOptions options;
  options.registry = ProbeRegistry();
  const auto model = Model::FromModule(HandleOf({DType::kF32, Shape()}), options);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("is f32[*], expected a resource"));
}

// A product over runtime axes leaves nothing.
TEST(FalseShapes, LoopsOverNothingDoNotStart) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId axes = f.AddInput({DType::kI32, Shape({1})}, "axes");
  const ValueId x = f.AddConst({DType::kI8, {0, 3, 4}}, Buffer::Copy({}));
  f.outputs = f.AddNode(Op::kReduceProd, {x, axes}, {Type{DType::kI8, {2, 4}}}).results;
  for (const ValueId id : {x, f.outputs[0]})
    f.value(id).quant = std::make_shared<const Quant>(
        Quant{.scales = std::vector{1.0f}, .zero_points = std::vector<int64_t>{0}});
  const auto session = SessionOf(std::move(module));
  const std::vector<int32_t> axis = {1};
  ASSERT_TRUE(session->SetInput(0, {{DType::kI32, Shape({1})}, Buffer::Of<int32_t>(axis)}));
  const Status ran = session->Run();
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ToString(session->output(0)->type), "i8[0,4]");
}

// 2^27 pixels without channels, as an input and as a constant.
TEST(FalseShapes, EmptyResultsTakeNoTime) {
  for (const bool constant : {false, true}) {
    auto module = std::make_unique<Module>();
    Function& f = module->Add("main");
    const Type pixels = run::F32({1, 2, int64_t{1} << 26, 0});
    const ValueId x = constant ? f.AddConst(pixels, Buffer::Copy({})) : f.AddInput(pixels, "x");
    Attrs attrs;
    attrs.Set("padding", "VALID");
    for (const char* const size : {"filter_height", "filter_width", "stride_h", "stride_w"})
      attrs.Set(size, 1);
    f.outputs = f.AddNode(Op::kMaxPool2D, {x}, {pixels}, attrs).results;
    const auto session = SessionOf(std::move(module));
    const Status ran = session->Run();
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ToString(session->output(0)->type), "f32[1,2,67108864,0]");
  }
}

// No row of two billion classes: nothing bounds the time of what a kernel prepares for a class.
TEST(FalseShapes, HugeDimsOfAnEmptyTensorAreRefused) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId logits = f.AddInput(run::F32({0, INT32_MAX}), "logits");
  const ValueId draws = f.AddInput({DType::kI32, Shape(std::vector<int64_t>{})}, "draws");
  f.outputs = f.AddNode(Op::kMultinomial, {logits, draws}, {Type{DType::kI64, {0, 2}}}).results;
  const auto model = Opened(std::move(module));
  const auto session = Session::Create(model, {});
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message, HasSubstr("is f32[0,2147483647], which cannot be stored"));
}

TEST(FalseShapes, AnInputOfTooManyBytesIsRefused) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const Type huge = run::F32({1 << 10, 1 << 20, INT32_MAX, 2});
  f.outputs = f.AddNode(Op::kNeg, {f.AddInput(huge, "x")}, {huge}).results;
  const auto session = Session::Create(Opened(std::move(module)), {});
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message,
              HasSubstr("is f32[1024,1048576,2147483647,2], which cannot be stored"));
}

// Planning computes the rank, of one result.
TEST(FalseShapes, ARankOfTwoResultsIsRefused) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(run::F32({3, 4}), "x");
  f.outputs = f.AddNode(Op::kRank, {x}, {Type{DType::kI32, {3, 4}}, Type{DType::kI32, {6}}}).results;
  const auto session = SessionOf(std::move(module));
  const Status ran = session->Run();
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().message, HasSubstr("RANK"));
}

// QUANTIZE along the last of three declared dims of a value that has one.
TEST(FalseShapes, ScalesAlongADimThatIsAbsentAreRefused) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput({DType::kF32, Shape()}, "x");
  const ValueId y = f.AddNode(Op::kQuantize, {x}, {Type{DType::kI8, {2, 1, 2}}}).results[0];
  f.value(y).quant = std::make_shared<const Quant>(
      Quant{.scales = std::vector{1.0f, 2.0f}, .zero_points = std::vector<int64_t>{0, 0}, .axis = 2});
  f.outputs = {y};
  const auto session = SessionOf(std::move(module));
  ASSERT_TRUE(session->SetInput(0, {run::F32({2}), Buffer::Of<float>(std::vector<float>{1, 2})}));
  const Status ran = session->Run();
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().message, HasSubstr("result 0: is quantized along dimension 2 of i8[2]"));
}

}  // namespace
}  // namespace fusebox::session_test
