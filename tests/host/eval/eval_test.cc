// SPDX-License-Identifier: Apache-2.0
#include "host/eval/eval.h"
#include "host/graph/npy.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fusebox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<Registry> BuiltIn() {
  Config config;
  config.search_default_path = false;
  auto registry = Registry::Create(config);
  EXPECT_TRUE(registry) << registry.error().message;
  return *registry;
}

Type F32(std::vector<int64_t> dims) { return {DType::kF32, Shape(std::move(dims))}; }

Tensor Floats(std::vector<float> values) {
  return {F32({static_cast<int64_t>(values.size())}), Buffer::Of<float>(values)};
}

Attrs Ref(const char* key, const char* function, const char* key2 = nullptr,
          const char* function2 = nullptr) {
  Attrs attrs;
  attrs.Set(key, FunctionRef{function});
  if (key2 != nullptr) attrs.Set(key2, FunctionRef{function2});
  return attrs;
}

// A session reserves its inputs, among them the caches of keys and values of a language model.
TEST(Block, LeavesZeroedMemoryUntouched) {
  constexpr size_t kBytes = size_t{192} << 10;
  std::free(std::malloc(4 * kBytes));  // from now on, such memory is from the heap of glibc
  Block other;
  other.Reserve(2 * kBytes);
  std::memset(other.data(), 1, 2 * kBytes);
  other.Free();
  Block block;
  ASSERT_TRUE(block.Reserve(kBytes, true));
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t end = reinterpret_cast<uintptr_t>(block.data() + kBytes) / page * page;
  unsigned char resident = 0;
  ASSERT_EQ(mincore(reinterpret_cast<void*>(end), page, &resident), 0);
  EXPECT_FALSE(resident & 1);
  EXPECT_EQ(std::count(block.data() + kBytes, block.data() + kBytes + kOverread, std::byte{0}), kOverread);
}

TEST(Evaluate, ComputesANodeOnConstants) {
  Function f("f");
  const ValueId a = f.AddInput(F32({2})), b = f.AddInput(F32({2}));
  const Node& node = f.AddNode(Op::kAdd, {a, b}, {F32({2})});
  const Tensor operands[] = {Floats({1, 2}), Floats({10, 20})};
  const auto results = Evaluate(*BuiltIn(), f, node, operands);
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_THAT((*results)[0].data.As<float>(), ElementsAre(11, 22));
  EXPECT_FALSE(Evaluate(*BuiltIn(), f, node, std::span(operands).first(1))) << "one operand is missing";
}

TEST(Evaluate, GivesKernelsMemoryForResultsThatTheySize) {
  Function f("f");
  const ValueId x = f.AddInput(F32({3}));
  const Node& node = f.AddNode(Op::kWhere, {x}, {{DType::kI64, {-1, 1}}});
  const Tensor operand[] = {Floats({0, 5, 7})};
  const auto results = Evaluate(*BuiltIn(), f, node, operand);
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ((*results)[0].type.shape, Shape({2, 1}));
  EXPECT_THAT((*results)[0].data.As<int64_t>(), ElementsAre(1, 2));
}

TEST(Infer, KeepsTheMorePreciseOfDeclaredAndComputed) {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput(F32({-1, 4}));
  f.AddNode(Op::kRelu, {x}, {{DType::kF32, Shape()}});
  const ValueId declared = f.AddNode(Op::kRelu, {x}, {F32({7, -1})}).results[0];
  f.outputs = {declared};
  ASSERT_TRUE(InferTypes(*BuiltIn(), module, f));
  EXPECT_EQ(f.value(f.nodes[0]->results[0]).type, F32({-1, 4}));
  EXPECT_EQ(f.value(declared).type, F32({7, 4}));
  bool changed = true;
  ASSERT_TRUE(InferTypes(*BuiltIn(), module, f, &changed));
  EXPECT_FALSE(changed);
}

TEST(Infer, NamesNodeAndTypesOfAContradiction) {
  Module module;
  Function& f = module.Add("main");
  f.AddNode(Op::kRelu, {f.AddInput(F32({2}))}, {F32({3})});
  f.nodes[0]->location.name = "model/act";
  const Status status = InferNode(*BuiltIn(), module, f, *f.nodes[0]);
  ASSERT_FALSE(status);
  for (const char* part : {"model/act", "f32[2]", "f32[3]"})
    EXPECT_THAT(status.error().message, HasSubstr(part));
}

TEST(Infer, GoesThroughCalls) {
  Module module;
  Function& f = module.Add("main");
  Function& callee = module.Add("callee");
  callee.outputs = {callee.AddNode(Op::kRelu, {callee.AddInput(F32({-1}))}, {F32({-1})}).results[0]};
  f.outputs = {
      f.AddNode(Op::kCall, {f.AddInput(F32({5}))}, {F32({-1})}, Ref("subgraph", "callee")).results[0]};
  ASSERT_TRUE(InferTypes(*BuiltIn(), module, f));
  EXPECT_EQ(f.value(f.outputs[0]).type, F32({5}));
}

// while (...) { body } over x[4] and y[4]; the body keeps x and makes y longer.
TEST(Infer, ALoopTakesOnlyTypesThatItGivesBack) {
  Module module;
  Function& f = module.Add("main");
  Function& condition = module.Add("condition");
  Function& body = module.Add("body");
  for (Function* g : {&condition, &body}) {
    g->AddInput(F32({-1}));
    g->AddInput(F32({-1}));
  }
  condition.outputs = {condition.AddConst<uint8_t>(DType::kBool, Shape(std::vector<int64_t>()), {0})};
  const ValueId longer =
      body.AddNode(Op::kConcatenation, {body.inputs[1], body.inputs[1]}, {F32({-1})}).results[0];
  body.outputs = {body.AddNode(Op::kRelu, {body.inputs[0]}, {F32({-1})}).results[0], longer};
  const ValueId x = f.AddInput(F32({4})), y = f.AddInput(F32({4}));
  f.outputs = f.AddNode(Op::kWhile, {x, y}, {F32({-1}), F32({-1})},
                        Ref("cond_subgraph_index", "condition", "body_subgraph_index", "body"))
                  .results;
  const Status status = InferTypes(*BuiltIn(), module, f);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(f.value(f.outputs[1]).type, F32({-1}));
  // The condition sees every iteration, not the first one alone.
  EXPECT_EQ(condition.value(condition.inputs[1]).type, F32({-1}));
}

TEST(Infer, ALoopThatKeepsItsTypesTellsThemToItsCondition) {
  Module module;
  Function& f = module.Add("main");
  Function& condition = module.Add("condition");
  Function& body = module.Add("body");
  condition.AddInput(F32({-1}));
  condition.outputs = {condition.AddConst<uint8_t>(DType::kBool, Shape(std::vector<int64_t>()), {0})};
  body.outputs = body.AddNode(Op::kRelu, {body.AddInput(F32({-1}))}, {F32({-1})}).results;
  f.outputs = f.AddNode(Op::kWhile, {f.AddInput(F32({4}))}, {F32({-1})},
                        Ref("cond_subgraph_index", "condition", "body_subgraph_index", "body"))
                  .results;
  const Status status = InferTypes(*BuiltIn(), module, f);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(condition.value(condition.inputs[0]).type, F32({4}));
  EXPECT_EQ(f.value(f.outputs[0]).type, F32({4}));
}

// A branch and the body of a loop that reshape 3 elements to 2 rows of 2: neither may ever run.
TEST(Infer, ABranchOrALoopsBodyMayContradictItsTypes) {
  for (const bool loop : {false, true}) {
    Module module;
    Function& f = module.Add("main");
    Function& bad = module.Add("bad");
    const ValueId rows = bad.AddConst<int32_t>(DType::kI32, {2}, {2, 2});
    bad.outputs = bad.AddNode(Op::kReshape, {bad.AddInput(F32({3})), rows}, {F32({2, 2})}).results;
    Function& other = module.Add("other");
    const ValueId input = other.AddInput(F32({3}));
    const Type flag{DType::kBool, Shape::Scalar()};
    if (loop) other.outputs = {other.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
    else other.outputs = other.AddNode(Op::kRelu, {input}, {F32({3})}).results;
    const ValueId x = f.AddInput(F32({3}));
    if (loop) {
      f.outputs = f.AddNode(Op::kWhile, {x}, {{DType::kF32, Shape()}},
                            Ref("cond_subgraph_index", "other", "body_subgraph_index", "bad"))
                      .results;
    } else {
      f.outputs = f.AddNode(Op::kIf, {f.AddInput(flag), x}, {{DType::kF32, Shape()}},
                            Ref("then_subgraph_index", "bad", "else_subgraph_index", "other"))
                      .results;
    }
    const Status status = InferTypes(*BuiltIn(), module, f);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_FALSE(f.value(f.outputs[0]).type.shape.ranked());
  }
}

TEST(Fold, ReplacesConstantChainsAndShapes) {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput(F32({3, 2}));
  const ValueId one = f.AddConst<float>(DType::kF32, {1}, {1});
  const ValueId two = f.AddNode(Op::kAdd, {one, one}, {F32({1})}).results[0];
  const ValueId four = f.AddNode(Op::kMul, {two, two}, {F32({1})}).results[0];
  const ValueId shape = f.AddNode(Op::kShape, {x}, {{DType::kI32, {2}}}).results[0];
  f.AddNode(Op::kExp, {x}, {F32({3, 2})});  // nobody reads it
  f.outputs = {f.AddNode(Op::kAdd, {x, four}, {F32({3, 2})}).results[0], shape};
  const auto folded = Fold(*BuiltIn(), module, f);
  ASSERT_TRUE(folded);
  EXPECT_EQ(*folded, 4);
  ASSERT_EQ(f.nodes.size(), 1u);
  EXPECT_THAT(f.value(four).data.As<float>(), ElementsAre(4));
  EXPECT_THAT(f.value(shape).data.As<int32_t>(), ElementsAre(3, 2));
  EXPECT_FALSE(f.value(two).data) << "an intermediate's memory is freed";
}

TEST(Fold, LeavesRandomStatefulAndLargeResultsAlone) {
  Module module;
  Function& f = module.Add("main");
  const ValueId dims = f.AddConst<int32_t>(DType::kI32, {2}, {1000, 1000});
  const ValueId value = f.AddConst<float>(DType::kF32, Shape(std::vector<int64_t>()), {0});
  f.outputs = {f.AddNode(Op::kRandomUniform, {dims}, {F32({1000, 1000})}).results[0],
               f.AddNode(Op::kFill, {dims, value}, {F32({1000, 1000})}).results[0]};
  EXPECT_EQ(*Fold(*BuiltIn(), module, f), 0);
  EXPECT_EQ(*Fold(*BuiltIn(), module, f, {.max_growth = 8 << 20}), 1);
}

TEST(Fold, LeavesStringsAloneOfWhichNobodyKnowsHowManyBytesTheyTake) {
  Module module;
  Function& f = module.Add("main");
  const ValueId text = f.AddConst({DType::kString, {1}}, PackStrings({"a"}));
  const ValueId times = f.AddConst<int32_t>(DType::kI32, {1}, {2});
  f.outputs = f.AddNode(Op::kTile, {text, times}, {{DType::kString, {2}}}).results;
  EXPECT_EQ(*Fold(*BuiltIn(), module, f), 0);
  EXPECT_FALSE(f.value(f.outputs[0]).data);
}

// 5 MB whose convolution takes minutes.
TEST(Fold, LeavesWorkOfMinutesToTheRun) {
  Module module;
  Function& f = module.Add("main");
  const Type type = F32({1, 256, 256, 4}), filter = F32({4, 256, 256, 4});
  const auto zeros = [&](const Type& of) {
    return f.AddConst(of, Buffer::Make(*ByteSize(of), [](std::span<std::byte>) {}));
  };
  Attrs attrs;
  attrs.Set("padding", "SAME");
  attrs.Set("stride_h", 1);
  attrs.Set("stride_w", 1);
  f.outputs = f.AddNode(Op::kConv2D, {zeros(type), zeros(filter), kNoValue}, {type}, attrs).results;
  EXPECT_EQ(*Fold(*BuiltIn(), module, f), 0);
}

TEST(RemoveDead, KeepsWhatHasEffects) {
  Function f("f");
  const ValueId x = f.AddInput(F32({1}));
  f.AddNode(Op::kCustom, {f.AddNode(Op::kExp, {x}, {F32({1})}).results[0]}, {F32({1})}).name = "acme.print";
  f.AddNode(Op::kNeg, {f.AddNode(Op::kExp, {x}, {F32({1})}).results[0]}, {F32({1})});
  EXPECT_EQ(RemoveDead(f), 2);
  EXPECT_EQ(f.nodes.size(), 2u);
}

TEST(ChooseKernel, SaysWhoPromisesAnOpAndWhereItLooked) {
  Function f("f");
  Node& node = f.AddNode(Op::kCustom, {f.AddInput(F32({1}))}, {F32({1})});
  node.name = "acme.op";
  node.fused = std::make_shared<Provenance>(Provenance{"com.acme", "1.2.3", "acme.rule", "thing"});
  const auto kernel = ChooseKernel(*BuiltIn(), f, node);
  ASSERT_FALSE(kernel);
  for (const char* part : {"acme.op", "f32[1]", "com.acme 1.2.3", "searched"})
    EXPECT_THAT(kernel.error().message, HasSubstr(part));
}

}  // namespace
}  // namespace fusebox
