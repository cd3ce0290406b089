// SPDX-License-Identifier: Apache-2.0
// Plain functions: steps, memory, shapes that are known only when values are.
#include <gmock/gmock.h>

#include <numeric>
#include <random>

#include "tests/host/run/graphs.h"

namespace fusebox::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Execute, RunsNodesInOrder) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({-1}));
  f.outputs = {Custom(f, "test.inplace", {Custom(f, "test.twice", {x}, F32({-1}))}, F32({-1}))};
  Machine machine(std::move(module));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({1, 2})})[0]), ElementsAre(3, 5));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({1, 2, 3})})[0]), ElementsAre(3, 5, 7));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({})})[0]), ElementsAre());
}

TEST(Execute, ReturnsInputsConstantsAndOneValueTwice) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({2}));
  const ValueId constant = f.AddConst<float>(DType::kF32, {1}, {7});
  const ValueId y = Custom(f, "test.twice", {x}, F32({2}));
  f.outputs = {x, constant, y, y};
  Machine machine(std::move(module));
  const auto outputs = machine.Run({Floats({1, 2})});
  EXPECT_THAT(FloatsOf(outputs[0]), ElementsAre(1, 2));
  EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(7));
  EXPECT_THAT(FloatsOf(outputs[2]), ElementsAre(2, 4));
  EXPECT_THAT(FloatsOf(outputs[3]), ElementsAre(2, 4));
}

TEST(Execute, InPlaceKernelsNeverTouchInputsOrWhatIsReadLater) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({2}));
  const ValueId a = Custom(f, "test.inplace", {x}, F32({2}));
  const ValueId b = Custom(f, "test.inplace", {a}, F32({2}));
  const ValueId c = Custom(f, "test.twice", {a}, F32({2}));
  f.outputs = {x, b, c};
  Machine machine(std::move(module));
  const auto outputs = machine.Run({Floats({1, 2})});
  EXPECT_THAT(FloatsOf(outputs[0]), ElementsAre(1, 2));
  EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(3, 4));
  EXPECT_THAT(FloatsOf(outputs[2]), ElementsAre(4, 6));
}

// As damaged files have them.
TEST(Execute, ShapesWithoutResultsAreRefused) {
  for (const Op op : {Op::kShape, Op::kRank}) {
    auto module = std::make_unique<Module>();
    Function& f = module->Add("main");
    const ValueId x = f.AddInput(F32({2}));
    f.AddNode(op, {x}, {});
    f.outputs = {x};
    Machine machine(std::move(module));
    EXPECT_THAT(machine.Error({Floats({1, 2})}), HasSubstr("has 0 results, expected 1")) << Info(op).name;
  }
}

// Who reads the result would be chosen for the type that is declared, and be given the other.
TEST(Execute, AResultOfAnotherTypeThanDeclaredIsRefused) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{2}, {-1}}) {
    auto module = std::make_unique<Module>();
    Function& f = module->Add("main");
    const ValueId x = f.AddInput(F32(dims));
    f.outputs = {Custom(f, "test.twice", {x}, {DType::kBool, Shape(dims)})};
    Machine machine(std::move(module));
    EXPECT_THAT(machine.Error({Floats({1, 2})}), HasSubstr("test.twice"));
    EXPECT_THAT(machine.Error({Floats({1, 2})}),
                HasSubstr("result 0 is declared bool, but infer returns f32"));
  }
}

// Random graphs of 2x and x + 1, with and without sharing of memory, against the same arithmetic on single
// numbers.
TEST(Execute, RandomGraphsComputeWhatTheyShould) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    auto module = std::make_unique<Module>();
    Function& f = module->Add("main");
    std::vector<ValueId> values = {f.AddInput(F32({33}))};
    std::vector<float> expected = {1};
    const int count = 1 + static_cast<int>(random() % 30);
    for (int i = 0; i < count; ++i) {
      const size_t from = values.size() - 1 - random() % std::min<size_t>(values.size(), 4);
      const bool twice = expected[from] < 1e5f && random() % 2 == 0;
      values.push_back(Custom(f, twice ? "test.twice" : "test.inplace", {values[from]}, F32({33})));
      expected.push_back(twice ? 2 * expected[from] : expected[from] + 1);
    }
    std::vector<float> wanted;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i + 1 < values.size() && random() % 4 != 0) continue;
      f.outputs.push_back(values[i]);
      wanted.push_back(expected[i]);
    }
    Machine machine(std::move(module));
    const auto outputs = machine.Run({Floats(std::vector<float>(33, 1.0f))});
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(FloatsOf(outputs[i]), std::vector<float>(33, wanted[i]))
          << "round " << round << ", output " << i;
    }
  }
}

TEST(Execute, UnpacksAConstantOnceAndKeepsIt) {
  constexpr int64_t kCount = 2000;  // too many to be computed while planning
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({-1}));
  const ValueId packed = f.AddConst<int8_t>(DType::kI8, {kCount}, std::vector<int8_t>(kCount, 1));
  const ValueId weights = f.AddNode(Op::kDequantize, {packed}, {F32({kCount})}).results[0];
  f.outputs = {Custom(f, "test.inplace", {weights}, F32({kCount})), weights,
               Custom(f, "test.twice", {x}, F32({-1}))};
  Machine machine(std::move(module));
  const auto first = machine.Run({Floats({1})});
  const std::vector<float> unpacked = FloatsOf(first[1]);
  ASSERT_EQ(unpacked.size(), size_t{kCount});
  EXPECT_EQ(FloatsOf(first[0])[kCount - 1], unpacked[0] + 1);
  EXPECT_EQ(FloatsOf(machine.Run({Floats({1, 2})})[1]), unpacked);  // by another plan
  machine.runner->Reset();
  const auto again = machine.Run({Floats({3})});
  EXPECT_EQ(FloatsOf(again[1]), unpacked);
  EXPECT_EQ(FloatsOf(again[0]), FloatsOf(first[0]));
  EXPECT_THAT(FloatsOf(again[2]), ElementsAre(6));
}

TEST(Execute, GivesScratchAndKeepsPersistentMemoryUntilReset) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({2}));
  f.outputs = {Custom(f, "test.count", {x}, F32({2}))};
  Machine machine(std::move(module));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({10, 20})})[0]), ElementsAre(11, 21));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({10, 20})})[0]), ElementsAre(12, 22));
  machine.runner->Reset();
  EXPECT_THAT(FloatsOf(machine.Run({Floats({10, 20})})[0]), ElementsAre(11, 21));
}

TEST(Execute, PlansOnAfterAResultThatWasSizedByTheRun) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({4}));
  const ValueId doubled = Custom(f, "test.twice", {x}, F32({4}));
  const ValueId where = Custom(f, "test.nonzero", {doubled}, {DType::kI64, {-1}});
  const ValueId cast = f.AddNode(Op::kCast, {where}, {F32({-1})},
                                 [] {
                                   Attrs attrs;
                                   attrs.Set("out_data_type", DType::kF32);
                                   return attrs;
                                 }())
                           .results[0];
  const ValueId y = Custom(f, "test.append", {cast}, F32({-1}));
  f.outputs = {y, Custom(f, "test.twice", {doubled}, F32({4})), where};
  Machine machine(std::move(module));
  for (int i = 0; i < 2; ++i) {
    auto outputs = machine.Run({Floats({0, 3, 0, 4})});
    EXPECT_THAT(FloatsOf(outputs[0]), ElementsAre(1, 3, 4));
    EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(0, 12, 0, 16));
    outputs = machine.Run({Floats({5, 5, 5, 5})});
    EXPECT_THAT(FloatsOf(outputs[0]), ElementsAre(0, 1, 2, 3, 6));
    outputs = machine.Run({Floats({0, 0, 0, 0})});
    EXPECT_THAT(FloatsOf(outputs[0]), ElementsAre(0));
    EXPECT_EQ(outputs[2].type.shape, Shape({0}));
  }
}

TEST(Execute, APlanIsRightAgainAfterAnotherWasPreparedInBetween) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId doubled = Custom(f, "test.twice", {f.AddInput(F32({-1}))}, F32({-1}));
  f.outputs = {Custom(f, "test.twice", {doubled}, F32({-1}))};
  Machine machine(std::move(module));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({1, 2, 3})})[0]), ElementsAre(4, 8, 12));
  const Tensor fewer = Floats({5});
  const TensorView view(fewer.type, nullptr, fewer.data.size(), 0);
  const fbx_tensor* const input = view.abi();
  ASSERT_TRUE(machine.runner->Prepare(*machine.program->Find("main"), {&input, 1}));
  const auto outputs = machine.Run({Floats({1, 2, 3})});
  EXPECT_EQ(outputs[0].type, F32({3}));
  EXPECT_THAT(FloatsOf(outputs[0]), ElementsAre(4, 8, 12));
}

TEST(Execute, PlansAgainWhenAShapeHangsOnAValue) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId n = f.AddInput({DType::kI32, Shape(std::vector<int64_t>())});
  const ValueId m = f.AddInput({DType::kI32, Shape(std::vector<int64_t>())});
  const ValueId a = Custom(f, "test.iota", {n}, F32({-1}));
  const ValueId b = Custom(f, "test.iota", {m}, F32({-1}));
  f.outputs = {Custom(f, "test.append", {a}, F32({-1})), Custom(f, "test.twice", {b}, F32({-1}))};
  Machine machine(std::move(module));
  const auto scalar = [](int32_t v) {
    return Tensor{{DType::kI32, Shape(std::vector<int64_t>())}, Buffer::Of<int32_t>(std::vector<int32_t>{v})};
  };
  for (const auto& [i, j] : {std::pair(3, 2), std::pair(2, 3), std::pair(3, 2), std::pair(0, 1)}) {
    const auto outputs = machine.Run({scalar(i), scalar(j)});
    EXPECT_EQ(FloatsOf(outputs[0]).size(), static_cast<size_t>(i) + 1);
    EXPECT_EQ(FloatsOf(outputs[1]).size(), static_cast<size_t>(j));
    if (j == 3) {
      EXPECT_THAT(FloatsOf(outputs[1]), ElementsAre(0, 2, 4));
    }
  }
}

TEST(Execute, EvaluatesShapeChainsWhilePlanning) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({-1, 2}));
  const ValueId shape = f.AddNode(Op::kShape, {x}, {{DType::kI32, {2}}}).results[0];
  const ValueId axis = f.AddConst<int32_t>(DType::kI32, {1}, {0});
  Attrs keep;
  keep.Set("keep_dims", true);
  const ValueId count = f.AddNode(Op::kReduceProd, {shape, axis}, {{DType::kI32, {1}}}, keep).results[0];
  f.outputs = {f.AddNode(Op::kReshape, {x, count}, {F32({-1})}).results[0]};
  Machine machine(std::move(module));
  const Tensor input{F32({3, 2}), Buffer::Of<float>(std::vector<float>{1, 2, 3, 4, 5, 6})};
  const auto outputs = machine.Run({input});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].type.shape, Shape({6}));
  const std::string plan = machine.runner->Explain();
  EXPECT_THAT(plan, HasSubstr("while planning"));
  EXPECT_EQ(plan.find("function main, nodes", 1), std::string::npos) << "one segment is enough:\n" << plan;
}

TEST(Execute, NamesFunctionNodeAndReasonWhenAKernelFails) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({1}));
  f.outputs = {Custom(f, "test.fail", {x}, F32({1}))};
  f.nodes[0]->location.name = "model/unlucky";
  Machine machine(std::move(module));
  const std::string error = machine.Error({Floats({1})});
  EXPECT_THAT(error, HasSubstr("function main"));
  EXPECT_THAT(error, HasSubstr("model/unlucky"));
  EXPECT_THAT(error, HasSubstr("test.plugin"));
  EXPECT_THAT(error, HasSubstr("no luck today"));
}

TEST(Execute, NoticesAResultThatWasNeverSized) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  f.outputs = {Custom(f, "test.unsized", {f.AddInput(F32({1}))}, {DType::kI64, {-1}})};
  Machine machine(std::move(module));
  EXPECT_THAT(machine.Error({Floats({1})}), HasSubstr("not resized"));
}

TEST(Execute, RefusesAnOpThatNobodyRuns) {
  Module module;
  Function& f = module.Add("main");
  f.outputs = {Custom(f, "acme.unheard_of", {f.AddInput(F32({1}))}, F32({1}))};
  const auto program = Program::Create(module, TestRegistry());
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message, HasSubstr("acme.unheard_of"));
  EXPECT_THAT(program.error().message, HasSubstr("function main"));
  EXPECT_THAT(program.error().message, HasSubstr("searched"));
}

TEST(Execute, RunsTheBodyOfAFusedOpWithoutKernelAndSaysSoOnce) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  ValueId x = f.AddInput(F32({1}));
  for (int i = 0; i < 2; ++i) {
    x = Custom(f, "acme.fused", {x}, F32({1}));
    f.nodes.back()->body = "body";
    f.nodes.back()->fused =
        std::make_shared<Provenance>(Provenance{"com.acme", "1.2.3", "acme.rule", "thing"});
  }
  f.outputs = {x};
  Function& body = module->Add("body");
  body.outputs = {Custom(body, "test.twice", {body.AddInput(F32({1}))}, F32({1}))};
  Machine machine(std::move(module));
  EXPECT_THAT(FloatsOf(machine.Run({Floats({3})})[0]), ElementsAre(12));
  ASSERT_EQ(machine.program->notices().size(), 1u);
  EXPECT_THAT(machine.program->notices()[0], HasSubstr("acme.fused"));
  EXPECT_THAT(machine.program->notices()[0], HasSubstr("com.acme 1.2.3"));
}

TEST(Execute, NeverRunsAPlaceholder) {
  Module module;
  Function& f = module.Add("main");
  f.outputs = {Custom(f, "acme.fused", {f.AddInput(F32({1}))}, F32({1}))};
  f.nodes[0]->body = "body";
  Function& body = module.Add("body");
  body.AddInput(F32({1}));
  body.outputs = {body.AddConst<float>(DType::kF32, {1}, {0})};
  const auto program = Program::Create(module, TestRegistry());
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message, HasSubstr("acme.fused"));
}

}  // namespace
}  // namespace fusebox::run
