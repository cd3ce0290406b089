// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "host/graph/graph.h"

namespace fusebox {
namespace {

using ::testing::HasSubstr;

const Type kRowOf4{DType::kF32, {1, 4}};

// main(x) = RELU(x)
std::unique_ptr<Module> Relu() {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  const ValueId x = main.AddInput(kRowOf4, "x");
  main.outputs = main.AddNode(Op::kRelu, {x}, {kRowOf4}).results;
  return module;
}

std::string Why(const Module& module, Strictness strictness = Strictness::kWritable) {
  const Status status = Verify(module, strictness);
  return status ? "" : status.error().message;
}

// A recurrent node over x with the given initial state; results are the sequence and the final state.
Node& AddRnn(Function& f, ValueId x, ValueId state) {
  const ValueId w = f.AddConst<float>(DType::kF32, {4, 4}, std::vector<float>(16), "w");
  const ValueId b = f.AddConst<float>(DType::kF32, {4}, std::vector<float>(4), "b");
  return f.AddNode(Op::kRnn, {x, w, w, b, state}, {kRowOf4, kRowOf4});
}

TEST(Verify, AcceptsAPlainGraph) { EXPECT_EQ(Why(*Relu()), ""); }

TEST(Verify, RefusesAValueThatIsReadBeforeItIsDefined) {
  auto module = Relu();
  Function& main = *module->functions[0];
  main.AddNode(Op::kAbs, {main.outputs[0]}, {kRowOf4});
  std::swap(main.nodes[0], main.nodes[1]);
  EXPECT_EQ(Why(*module), "function main: node 0 ABS: operand 0: %1 is read before anything defines it");
}

TEST(Verify, RefusesAValueThatIsDefinedTwice) {
  auto module = Relu();
  Function& main = *module->functions[0];
  main.AddNode(Op::kAbs, {main.inputs[0]}, {kRowOf4}).results = main.outputs;
  EXPECT_EQ(Why(*module), "function main: node 1 ABS: result 0: %1 is defined twice");
}

TEST(Verify, RefusesNumbersOutOfRange) {
  auto module = Relu();
  module->functions[0]->nodes[0]->operands[0] = 77;
  EXPECT_EQ(Why(*module), "function main: node 0 RELU: operand 0: value 77 does not exist");
  module->functions[0]->nodes[0]->operands[0] = -5;
  EXPECT_NE(Why(*module), "");
  module->functions[0]->nodes[0]->operands[0] = kNoValue;
  EXPECT_EQ(Why(*module), "function main: node 0 RELU: operand 0 is absent but not optional");
}

TEST(Verify, RefusesBoolsThatAreNeitherTrueNorFalse) {
  const auto why = [](std::vector<uint8_t> bytes) {
    auto module = Relu();
    Function& main = *module->functions[0];
    const ValueId bools = main.AddConst<uint8_t>(DType::kBool, {3}, bytes, "mask");
    main.outputs.push_back(main.AddNode(Op::kLogicalNot, {bools}, {{DType::kBool, {3}}}).results[0]);
    return Why(*module);
  };
  EXPECT_EQ(why({0, 1, 1}), "");
  EXPECT_EQ(why({0, 1, 2}), "function main: %2 (mask): bool constant with bytes that are neither 0 nor 1");
  EXPECT_NE(why({255, 0, 0}), "");
}

TEST(Verify, CountsResultsOfWhatTheHostDoes) {
  for (const size_t results : {0, 1, 2}) {
    auto module = Relu();
    Function& main = *module->functions[0];
    main.AddNode(Op::kVarHandle, {}, std::vector<Type>(results, {DType::kResource, Shape::Scalar()}));
    EXPECT_EQ(Why(*module) == "", results == 1) << Why(*module);
  }
}

TEST(Verify, CountsOperands) {
  auto module = Relu();
  Node& node = *module->functions[0]->nodes[0];
  node.operands.push_back(node.operands[0]);
  EXPECT_EQ(Why(*module), "function main: node 0 RELU: has 2 operands, expected 1");
}

TEST(Verify, HoldsConstantsToTheirType) {
  auto module = Relu();
  module->functions[0]->AddConst(Type{DType::kI32, {3}}, Buffer::Make(8, {}), "c");
  EXPECT_EQ(Why(*module), "function main: %2 (c): constant of type i32[3] has 8 bytes, expected 12");
  module->functions[0]->value(2).type = {DType::kI32, {int64_t{1} << 40, int64_t{1} << 40}};
  EXPECT_NE(Why(*module), "") << "a size that overflows";
}

TEST(Verify, RefusesScalesThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto why = [&](std::vector<float> scales, Strictness strictness) {
      auto module = Relu();
      Quant quant;
      quant.zero_points = std::vector<int64_t>(scales.size());
      quant.scales = std::move(scales);
      quant.axis = 1;
      module->functions[0]->value(0).quant = std::make_shared<const Quant>(std::move(quant));
      return Why(*module, strictness);
    };
    for (const Strictness strictness : {Strictness::kLoose, Strictness::kWritable})
      EXPECT_THAT(why({bad}, strictness), HasSubstr("quantization with the scale " + std::to_string(bad)));
    EXPECT_THAT(why({1, 1, bad, 1}, Strictness::kWritable), HasSubstr("quantization with the scale "));
    EXPECT_EQ(why({1, 1, bad, 1}, Strictness::kLoose), "") << "who packs the weights looks at them";
  }
}

TEST(Verify, HoldsScalesAndZeroPointsToTheirType) {
  const auto why = [](const Quant& quant, DType dtype, bool constant, Strictness strictness) {
    auto module = Relu();
    Function& f = *module->functions[0];
    const ValueId v = constant ? f.AddConst({dtype, {4}}, Buffer::Make(4, {})) : f.AddInput({dtype, {4}});
    f.value(v).quant = std::make_shared<const Quant>(quant);
    return Why(*module, strictness);
  };
  const auto i8 = [&](float scale, int64_t zero, bool constant = false) {
    return why({.scales = std::vector{scale}, .zero_points = std::vector{zero}}, DType::kI8, constant,
               Strictness::kLoose);
  };
  EXPECT_EQ(i8(0.5F, -128), "");
  EXPECT_THAT(i8(-0.5F, 0), HasSubstr("quantization with the scale -0.5"));
  EXPECT_THAT(i8(0, 0), HasSubstr("quantization with the scale 0"));
  EXPECT_EQ(i8(0, 0, true), "") << "weights of zero";
  EXPECT_THAT(i8(1, 128), HasSubstr("zero point 128, which i8 cannot hold"));
  const Quant two = {.scales = std::vector<float>{1, 1, 1, 1}, .zero_points = std::vector<int64_t>{0, 0}};
  EXPECT_THAT(why(two, DType::kU8, true, Strictness::kLoose), HasSubstr("2 zero points, but 4 scales"));
  Quant range = {.scales = std::vector{1.0F}, .min = std::vector{NAN}};
  EXPECT_THAT(why(range, DType::kI8, true, Strictness::kWritable), HasSubstr("range that is NaN"));
  EXPECT_EQ(why(range, DType::kI8, true, Strictness::kLoose), "") << "runs do not read it";
}

TEST(Verify, LetsNobodyReadAnOverwrittenState) {
  auto module = Relu();
  Function& main = *module->functions[0];
  const ValueId state = main.AddNode(Op::kAbs, {main.inputs[0]}, {kRowOf4}).results[0];
  Node& rnn = AddRnn(main, main.inputs[0], state);
  main.outputs = {rnn.results[0], rnn.results[1]};
  EXPECT_EQ(Why(*module), "");
  main.outputs = {state};
  EXPECT_EQ(Why(*module),
            "function main: output 0: %2 is read after node 2 RNN has overwritten it; read its final state "
            "instead");
  EXPECT_EQ(Why(*module, Strictness::kLoose), "");
}

// Kernels write states behind as many results as there should be.
TEST(Verify, CountsTheResultsInFrontOfStates) {
  auto module = Relu();
  Function& main = *module->functions[0];
  const ValueId state = main.AddNode(Op::kAbs, {main.inputs[0]}, {kRowOf4}).results[0];
  Node& rnn = AddRnn(main, main.inputs[0], state);
  main.outputs = {rnn.results[0]};
  EXPECT_EQ(Why(*module), "");
  rnn.results.insert(rnn.results.begin() + 1, main.AddValue(kRowOf4));
  EXPECT_THAT(Why(*module, Strictness::kLoose), testing::HasSubstr("RNN: has 2 results, expected 1"));
}

TEST(Verify, RefusesAConstantAsState) {
  auto module = Relu();
  Function& main = *module->functions[0];
  AddRnn(main, main.inputs[0], main.AddConst<float>(DType::kF32, {1, 4}, std::vector<float>(4), "zero"));
  EXPECT_EQ(Why(*module),
            "function main: node 1 RNN: operand 4: %2 (zero) is a constant, but the op overwrites it");
}

TEST(Verify, RefusesRecursion) {
  auto module = Relu();
  for (const char* name : {"a", "b"}) {
    Function& f = module->Add(name);
    const ValueId x = f.AddInput(kRowOf4);
    Attrs attrs;
    attrs.Set("subgraph", FunctionRef{name[0] == 'a' ? "b" : "a"});
    f.outputs = f.AddNode(Op::kCall, {x}, {kRowOf4}, attrs).results;
  }
  EXPECT_NE(Why(*module).find("is recursive"), std::string::npos) << Why(*module);
}

TEST(Verify, RefusesTwoFunctionsOrTwoSignaturesOfOneName) {
  auto module = Relu();
  module->Add("f");
  module->signatures = {{"run", "main", {"x"}, {"y"}}, {"other", "main", {"x"}, {"y"}}};
  EXPECT_EQ(Why(*module), "");
  module->signatures[1].key = "run";
  EXPECT_EQ(Why(*module), "signature run exists twice");
  module->functions[1]->name = "main";
  EXPECT_EQ(Why(*module), "function main exists twice");
}

TEST(Verify, RefusesAChainOfCallsThatIsTooLong) {
  auto module = Relu();
  for (int i = 0; i < 2000; ++i) {
    Function& f = module->Add("f" + std::to_string(i));
    const ValueId x = f.AddInput(kRowOf4);
    Attrs attrs;
    attrs.Set("subgraph", FunctionRef{i == 1999 ? "main" : "f" + std::to_string(i + 1)});
    f.outputs = f.AddNode(Op::kCall, {x}, {kRowOf4}, attrs).results;
  }
  EXPECT_NE(Why(*module).find("nest too deeply"), std::string::npos) << Why(*module);
}

TEST(Verify, HoldsCallsToTheInterfaceOfTheirFunction) {
  auto module = Relu();
  Function& f = module->Add("f");
  f.AddInput(Type{DType::kI32, {1}});
  Attrs attrs;
  attrs.Set("subgraph", FunctionRef{"f"});
  Function& main = *module->functions[0];
  Node& call = main.AddNode(Op::kCall, {main.inputs[0]}, {}, attrs);
  EXPECT_NE(Why(*module).find("differ in element type at 0: f32 and i32"), std::string::npos) << Why(*module);
  call.attrs.Set("subgraph", FunctionRef{"nowhere"});
  EXPECT_NE(Why(*module).find("function nowhere, which does not exist"), std::string::npos) << Why(*module);
}

TEST(Verify, KeepsInternalOpsOutOfFiles) {
  auto module = Relu();
  module->functions[0]->AddNode(Op::kOpaque, {}, {}).name = "Mystery";
  EXPECT_EQ(Why(*module, Strictness::kLoose), "");
  EXPECT_EQ(Why(*module),
            "function main: node 1 Mystery: is an internal op, which .tflite files cannot hold");
}

}  // namespace
}  // namespace fusebox
