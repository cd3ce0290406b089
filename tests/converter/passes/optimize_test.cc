// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x [1,2] -> FULLY_CONNECTED to 3 channels -> ADD constant -> RELU
struct Dense : Bench {
  Function& f = Add("main");
  ValueId y;
  explicit Dense(ValueId bias = kNoValue) {
    const ValueId x = f.AddInput(F32({1, 2}));
    const ValueId w = f.AddConst<float>(DType::kF32, {3, 2}, {1, 2, 3, 4, -5, -6});
    y = f.AddNode(Op::kFullyConnected, {x, w, bias}, {F32({1, 3})}).results[0];
  }
  ValueId Plus(Shape shape, std::vector<float> values, bool constant_first = false) {
    const ValueId c = f.AddConst<float>(DType::kF32, std::move(shape), std::move(values));
    y = f.AddNode(Op::kAdd, constant_first ? std::vector{c, y} : std::vector{y, c}, {F32({1, 3})}).results[0];
    return y;
  }
  ValueId Relu() { return y = f.AddNode(Op::kRelu, {y}, {F32({1, 3})}).results[0]; }
  // Optimizes, and holds what the function computes against what it computed before.
  void Run() {
    if (f.outputs.empty()) f.outputs = {y};
    Sign(f);
    const std::vector<Tensor> in = {Floats({1, 2}, {0.5f, -2})};
    const auto before = Compute("main", in);
    EXPECT_EQ(Bench::Run(Optimize), "");
    const auto after = Compute("main", in);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(FloatsOf(before[i]), FloatsOf(after[i]));
  }
};

TEST(Optimize, PutsBiasAndActivationIntoTheOpBefore) {
  for (const bool constant_first : {false, true}) {
    Dense model;
    model.Plus({3}, {10, 20, 30}, constant_first);
    model.Relu();
    for (size_t i = 0; i < 3; ++i)
      model.f.value(model.f.nodes[i]->results[0]).name = std::string(Name(model.f.nodes[i]->op));
    model.Run();
    ASSERT_EQ(model.f.nodes.size(), 1u) << ToText(model.f);
    const Node& node = *model.f.nodes[0];
    EXPECT_EQ(model.f.value(node.results[0]).name, "RELU") << "it is no longer the value of the product";
    EXPECT_EQ(node.attrs.str("fused_activation_function", ""), "RELU");
    EXPECT_THAT(model.f.value(node.operands[2]).data.As<float>(), ElementsAre(10, 20, 30));
  }
}

TEST(Optimize, SumsTwoBiases) {
  Dense model;
  model.Plus({1, 3}, {1, 2, 3});
  model.Plus({3}, {10, 20, 30});
  model.Run();
  ASSERT_EQ(model.f.nodes.size(), 1u);
  EXPECT_THAT(model.f.value(model.f.nodes[0]->operands[2]).data.As<float>(), ElementsAre(11, 22, 33));
}

// The sums of an LSTM's cell: input by weights, state by weights, and a bias after both.
TEST(Optimize, PutsTheBiasOfASumIntoASummand) {
  for (const bool minus : {false, true}) {
    Rewritten m;
    const ValueId a = m.Op1(Op::kFullyConnected, {m.In({1, 5}), m.Weights({4, 5}), kNoValue});
    const ValueId b = m.Op1(Op::kFullyConnected, {m.In({1, 3}), m.Weights({4, 3}), m.Weights({4})});
    const ValueId sum = m.Op1(Op::kAdd, {a, b});
    m.Finish({m.Op1(minus ? Op::kSub : Op::kAdd, {sum, m.Weights({4})},
                    m.With({{"fused_activation_function", std::string("RELU")}}))});
    EXPECT_EQ(m.Ops(), "FULLY_CONNECTED FULLY_CONNECTED ADD");
    EXPECT_EQ(m.f.nodes[2]->attrs.str("fused_activation_function", ""), "RELU");
    EXPECT_NE(m.f.nodes[0]->operands[2], kNoValue);
  }
}

TEST(Optimize, LeavesTheBiasOfASumThatIsWider) {
  Rewritten wider, read, clipped;
  const auto dense = [](Rewritten& m) {
    return m.Op1(Op::kFullyConnected, {m.In({1, 5}), m.Weights({4, 5}), kNoValue});
  };
  wider.Finish(
      {wider.Op1(Op::kAdd, {wider.Op1(Op::kAdd, {dense(wider), wider.In({3, 4})}), wider.Weights({4})})});
  EXPECT_EQ(Count(wider.f, Op::kAdd), 2u) << "the summand is shared by the rows";
  const ValueId sum = read.Op1(Op::kAdd, {dense(read), read.In({1, 4})});
  read.Finish({read.Op1(Op::kAdd, {sum, read.Weights({4})}), sum});
  EXPECT_EQ(Count(read.f, Op::kAdd), 2u);
  const ValueId positive = clipped.Op1(Op::kAdd, {dense(clipped), clipped.In({1, 4})},
                                       clipped.With({{"fused_activation_function", std::string("RELU")}}));
  clipped.Finish({clipped.Op1(Op::kAdd, {positive, clipped.Weights({4})})});
  EXPECT_EQ(Count(clipped.f, Op::kAdd), 2u);
}

TEST(Optimize, LeavesWhatASecondReaderNeeds) {
  Dense bias, activation;
  const ValueId product = bias.y;
  bias.f.outputs = {bias.Plus({3}, {1, 2, 3}), product};
  bias.Run();
  EXPECT_EQ(bias.f.nodes.size(), 2u);
  EXPECT_THAT(bias.Notes(),
              HasSubstr("the bias is not merged into FULLY_CONNECTED: its operand has 2 readers"));
  const ValueId sum = activation.Plus({3}, {1, 2, 3});
  activation.f.outputs = {activation.Relu(), sum};
  activation.Run();
  EXPECT_EQ(activation.f.nodes.size(), 2u) << "the bias goes in, the activation does not";
  EXPECT_THAT(activation.Notes(), HasSubstr("RELU is not merged into"));
}

TEST(Optimize, LeavesABiasThatIsNone) {
  Dense late;
  late.Relu();
  late.Plus({3}, {1, 2, 3});
  late.Run();
  EXPECT_EQ(late.f.nodes.size(), 2u) << "the bias comes after the activation";
  Dense again;
  again.Relu();
  again.y = again.f.AddNode(Op::kReluN1To1, {again.y}, {F32({1, 3})}).results[0];
  again.Run();
  EXPECT_EQ(again.f.nodes.size(), 2u) << "no activation is a clamp to [0, 1]";
}

TEST(Optimize, SpreadsOneNumberOverTheChannels) {
  Dense model;
  model.Plus(Shape::Scalar(), {5});
  model.Run();
  ASSERT_EQ(model.f.nodes.size(), 1u);
  EXPECT_THAT(model.f.value(model.f.nodes[0]->operands[2]).data.As<float>(), ElementsAre(5, 5, 5));
}

// x [1,1,2,1], filter of C channels, a constant of that shape added.
std::string ConvPlus(int64_t channels, const Shape& bias, const Shape& sum, size_t* nodes) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId x = f.AddInput(F32({1, 1, 2, 1}));
  const std::vector<float> ones(static_cast<size_t>(*bias.element_count()), 1.0f);
  const ValueId w = f.AddConst<float>(DType::kF32, {channels, 1, 1, 1},
                                      std::vector<float>(static_cast<size_t>(channels), 2.0f));
  const ValueId zero =
      f.AddConst<float>(DType::kF32, {channels}, std::vector<float>(static_cast<size_t>(channels), 0.0f));
  Attrs window;
  window.Set("stride_h", 1);
  window.Set("stride_w", 1);
  const ValueId y = f.AddNode(Op::kConv2D, {x, w, zero}, {F32({1, 1, 2, channels})}, window).results[0];
  f.outputs =
      f.AddNode(Op::kAdd, {y, f.AddConst<float>(DType::kF32, bias, ones)}, {{DType::kF32, sum}}).results;
  bench.Sign(f);
  EXPECT_EQ(bench.Run(Optimize), "");
  *nodes = f.nodes.size();
  return bench.Notes();
}

TEST(Optimize, TakesABiasPerChannelOnly) {
  size_t nodes = 0;
  ConvPlus(3, {3}, {1, 1, 2, 3}, &nodes);
  EXPECT_EQ(nodes, 1u);
  ConvPlus(3, {1, 1, 1, 3}, {1, 1, 2, 3}, &nodes);
  EXPECT_EQ(nodes, 1u);
  EXPECT_THAT(ConvPlus(3, {2, 3}, {1, 1, 2, 3}, &nodes), HasSubstr("it varies over dimension 0"));
  EXPECT_EQ(nodes, 2u);
  ConvPlus(1, {3}, {1, 1, 2, 3}, &nodes);
  EXPECT_EQ(nodes, 2u) << "one channel is spread over three";
  ConvPlus(3, {1, 1, 1, 1, 3}, {1, 1, 1, 2, 3}, &nodes);
  EXPECT_EQ(nodes, 2u) << "the sum has a dimension more";
}

TEST(Optimize, MindsWeightsOfUnknownRank) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId x = f.AddInput(F32({1, 2})), w = f.AddInput({DType::kF32, Shape()});
  const ValueId y = f.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {{DType::kF32, Shape()}}).results[0];
  const ValueId c = f.AddConst<float>(DType::kF32, {3}, {1, 2, 3});
  f.outputs = f.AddNode(Op::kAdd, {y, c}, {{DType::kF32, Shape()}}).results;
  bench.Sign(f);
  EXPECT_EQ(bench.Run(Optimize), "");
  EXPECT_EQ(f.nodes.size(), 2u);
}

TEST(Optimize, DropsOpsThatChangeNothing) {
  Dense model;
  const ValueId ones = model.f.AddConst<float>(DType::kF32, {1, 3}, {1, 1, 1});
  model.y = model.f.AddNode(Op::kMul, {ones, model.y}, {F32({1, 3})}).results[0];
  const ValueId shape = model.f.AddConst<int32_t>(DType::kI32, {2}, {1, 3});
  model.y = model.f.AddNode(Op::kReshape, {model.y, shape}, {F32({1, 3})}).results[0];
  const ValueId order = model.f.AddConst<int32_t>(DType::kI32, {2}, {0, 1});
  model.y = model.f.AddNode(Op::kTranspose, {model.y, order}, {F32({1, 3})}).results[0];
  model.Relu();
  model.Run();
  EXPECT_EQ(model.f.nodes.size(), 1u) << ToText(model.f);
}

TEST(Optimize, KeepsAProductWithOnesThatBroadcasts) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId x = f.AddInput(F32({1, 3}));
  const ValueId ones = f.AddConst<float>(DType::kF32, {2, 1}, {1, 1});
  f.outputs = f.AddNode(Op::kMul, {x, ones}, {F32({2, 3})}).results;
  bench.Sign(f);
  EXPECT_EQ(bench.Run(Optimize), "");
  EXPECT_EQ(f.nodes.size(), 1u);
}

}  // namespace
}  // namespace fusebox::converter
