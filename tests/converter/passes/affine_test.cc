// SPDX-License-Identifier: Apache-2.0
// Batch normalization and other products and sums by constants.
#include <gmock/gmock.h>

#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;

struct Normalized : Rewritten {
  ValueId Times(ValueId x, ValueId c) { return Op1(Op::kMul, {x, c}); }
  ValueId Plus(ValueId x, ValueId c) { return Op1(Op::kAdd, {x, c}); }
  // FusedBatchNorm as the importer says it.
  ValueId Fused(ValueId x, int64_t channels) {
    return Plus(Times(x, Weights({channels})), Weights({channels}));
  }
  // Keras 3's.
  ValueId Unfused(ValueId x, int64_t channels) {
    const ValueId centerd = Op1(Op::kSub, {x, Weights({channels})});
    const ValueId deviation =
        Op1(Op::kRsqrt, {Op1(Op::kAdd, {Op1(Op::kSquare, {Weights({channels})}), C(0.001f)})});
    return Plus(Times(Times(centerd, deviation), Weights({channels})), Weights({channels}));
  }
  ValueId Conv(ValueId x, int64_t outs, const char* padding = "SAME") {
    const int64_t ins = f.value(x).type.shape[3];
    return Op1(Op::kConv2D, {x, Weights({outs, 3, 3, ins}), Weights({outs})}, Window(1, padding));
  }
};

TEST(Affine, PutsBatchNormIntoAConvolution) {
  Normalized fused;
  fused.Finish({fused.Op1(Op::kRelu, {fused.Fused(fused.Conv(fused.In({1, 4, 4, 2}), 3), 3)})});
  EXPECT_EQ(fused.Ops(), "CONV_2D");
  Normalized unfused;
  unfused.Finish({unfused.Op1(Op::kRelu6, {unfused.Unfused(unfused.Conv(unfused.In({-1, 4, 4, 2}), 3), 3)})});
  EXPECT_EQ(unfused.Ops(), "CONV_2D") << ToText(unfused.f);
  EXPECT_EQ(unfused.f.nodes[0]->attrs.str("fused_activation_function", ""), "RELU6");
}

TEST(Affine, PutsBatchNormIntoADepthwiseConvolutionByItsLastDimension) {
  Normalized m;
  Attrs window = m.Window(2);
  window.Set("depth_multiplier", 2);
  const ValueId y =
      m.Op1(Op::kDepthwiseConv2D, {m.In({1, 5, 5, 3}), m.Weights({1, 3, 3, 6}), m.Weights({6})}, window);
  m.Finish({m.Unfused(y, 6)});
  EXPECT_EQ(m.Ops(), "DEPTHWISE_CONV_2D");
}

TEST(Affine, PutsBatchNormIntoATransposedConvolutionThatHadNoBias) {
  Normalized m;
  const ValueId y = m.Op1(Op::kTransposeConv,
                          {m.Ints({1, 8, 8, 5}), m.Weights({5, 3, 3, 2}), m.In({1, 4, 4, 2})}, m.Window(2));
  m.Finish({m.Op1(Op::kRelu, {m.Fused(y, 5)})});
  EXPECT_EQ(m.Ops(), "TRANSPOSE_CONV RELU")
      << "version 4, which takes an activation, is newer than most readers";
  EXPECT_EQ(m.f.nodes[0]->operands.size(), 4u);
}

TEST(Affine, PutsBatchNormIntoFullyConnectedWithAndWithoutBias) {
  for (const bool bias : {false, true}) {
    Normalized m;
    const ValueId b = bias ? m.Weights({4}) : kNoValue;
    m.Finish({m.Fused(m.Op1(Op::kFullyConnected, {m.In({2, 3}), m.Weights({4, 3}), b}), 4)});
    EXPECT_EQ(m.Ops(), "FULLY_CONNECTED");
  }
}

TEST(Affine, TakesDifferencesQuotientsAndScalars) {
  Normalized m;
  ValueId y = m.Conv(m.In({1, 4, 4, 2}), 3);
  y = m.Op1(Op::kSub, {m.Weights({3}), y});
  y = m.Op1(Op::kDiv, {y, m.C({1, 1, 1, 3}, {2, 4, -8})});
  y = m.Times(m.C(3), y);
  m.Finish({y});
  EXPECT_EQ(m.Ops(), "CONV_2D");
}

TEST(Affine, TakesTheScaleOfAnInput) {
  Normalized m;
  const ValueId x = m.Times(m.In({1, 4, 4, 2}), m.C({2}, {0.5f, 0.25f}));
  m.Finish({m.Conv(x, 3)});
  EXPECT_EQ(m.Ops(), "CONV_2D");
  Normalized shifted;
  shifted.Finish({shifted.Conv(shifted.Plus(shifted.In({1, 4, 4, 2}), shifted.Weights({2})), 3)});
  EXPECT_EQ(shifted.Ops(), "ADD CONV_2D") << "SAME pads with zeros, which the sum would have moved";
}

TEST(Affine, LeavesWhatOthersRead) {
  Normalized twice;
  const ValueId y = twice.Conv(twice.In({1, 4, 4, 2}), 3);
  twice.Finish({twice.Fused(y, 3), y});
  EXPECT_EQ(twice.Ops(), "CONV_2D MUL ADD");
  EXPECT_THAT(twice.Notes(), HasSubstr("the scale is not merged into CONV_2D: its operand has 2 readers"));
  Normalized shared;  // two convolutions with one filter
  const ValueId w = shared.Weights({3, 1, 1, 2}), b = shared.C({3}, {0, 0, 0});
  const ValueId one = shared.Op1(Op::kConv2D, {shared.In({1, 4, 4, 2}), w, b}, shared.Window());
  const ValueId two = shared.Op1(Op::kConv2D, {shared.In({1, 4, 4, 2}), w, b}, shared.Window());
  shared.Finish({shared.Times(one, shared.Weights({3})), two});
  EXPECT_THAT(shared.Notes(), HasSubstr("its weights have 2 readers"));
  EXPECT_EQ(shared.f.nodes.size(), 3u);
}

TEST(Affine, LeavesWhatIsNotPerChannel) {
  Normalized image;
  image.Finish({image.Times(image.Conv(image.In({1, 4, 4, 2}), 3), image.Weights({1, 4, 1, 1}))});
  EXPECT_EQ(image.Ops(), "CONV_2D MUL");
  EXPECT_THAT(image.Notes(), HasSubstr("the scale is not merged into CONV_2D: it varies over dimension 1"));
  Normalized computed;
  computed.Finish({computed.Times(computed.Conv(computed.In({1, 4, 4, 2}), 3), computed.In({3}))});
  EXPECT_EQ(computed.Ops(), "CONV_2D MUL") << "not constant";
  Normalized late;
  late.Finish({late.Fused(late.Op1(Op::kRelu, {late.Conv(late.In({1, 4, 4, 2}), 3)}), 3)});
  EXPECT_EQ(late.Ops(), "CONV_2D MUL ADD") << "after the activation";
  Normalized zero;
  zero.f.outputs = {zero.Op1(Op::kDiv, {zero.Conv(zero.In({1, 4, 4, 2}), 3), zero.C({3}, {1, 0, 1})})};
  zero.Sign(zero.f);
  EXPECT_EQ(zero.Run(Optimize), "");
  EXPECT_EQ(zero.Ops(), "CONV_2D DIV") << "a division by zero stays one";
}

TEST(Affine, MergesARowToOneProductAndOneSum) {
  Normalized m;
  m.Finish({m.Op1(Op::kRelu, {m.Unfused(m.In({2, 5, 3}), 3)})});
  EXPECT_EQ(m.Ops(), "MUL ADD");
  Normalized sums;
  sums.Finish({sums.Plus(sums.Plus(sums.In({2, 3}), sums.Weights({3})), sums.C(2))});
  EXPECT_EQ(sums.Ops(), "ADD");
}

TEST(Affine, DoesNotMergeWhatWouldGrowOrIsReadBetween) {
  Normalized grows;  // [2,1] and [3] together are [2,3]
  grows.Finish({grows.Plus(grows.Plus(grows.In({2, 3}), grows.Weights({2, 1})), grows.Weights({3}))});
  EXPECT_EQ(grows.Ops(), "ADD ADD");
  Normalized read;
  const ValueId between = read.Plus(read.In({2, 3}), read.Weights({3}));
  read.Finish({read.Plus(between, read.C(2)), between});
  EXPECT_EQ(read.Ops(), "ADD ADD");
  Normalized widens;
  widens.Finish({widens.Plus(widens.Plus(widens.In({1, 3}), widens.Weights({2, 1})), widens.C(1))});
  EXPECT_EQ(widens.Ops(), "ADD ADD") << "the constant gives the result a row more";
}

TEST(Affine, LeavesAScaleThatWouldMakeWeightsInfinite) {
  for (const bool after : {true, false}) {
    Normalized m;
    const ValueId x = m.In({1, 2}), w = m.C({1, 2}, {1e30F, 1}), scale = m.C(1e20F);
    const auto dense = [&](ValueId v) { return m.Op1(Op::kFullyConnected, {v, w, kNoValue}); };
    m.f.outputs = {after ? m.Times(dense(x), scale) : dense(m.Times(x, scale))};
    m.Sign(m.f);
    const std::vector<Tensor> in = {Floats({1, 2}, {0, 1})};
    EXPECT_EQ(m.Run(Optimize), "");
    EXPECT_FLOAT_EQ(FloatsOf(m.Compute("main", in)[0])[0], 1e20F) << after;
  }
}

// 1.5 * 2^23 and back: rounding to whole numbers.
TEST(InARow, KeepsASumThatRounds) {
  Rewritten m;
  const ValueId x = m.In({4});
  const ValueId ten = m.Op1(Op::kMul, {x, m.C(10)});
  m.Finish({m.Op1(Op::kSub, {m.Op1(Op::kAdd, {ten, m.C(12582912)}), m.C(12582912)})});
  EXPECT_EQ(m.Ops(), "MUL ADD SUB");
}

TEST(InARow, MergesNothingThatF32CannotSay) {
  Rewritten large, small;
  const ValueId x = large.In({4}), y = small.In({4});
  large.f.outputs = {large.Op1(Op::kMul, {large.Op1(Op::kMul, {x, large.C(1e30F)}), large.C(1e30F)})};
  large.Sign(large.f);
  EXPECT_EQ(large.Run(Optimize), "");  // not Finish: what comes out is infinite
  EXPECT_EQ(large.Ops(), "MUL MUL");
  small.Finish({small.Op1(Op::kMul, {small.Op1(Op::kMul, {y, small.C(1e-30F)}), small.C(1e-30F)})});
  EXPECT_EQ(small.Ops(), "MUL MUL");
}

}  // namespace
}  // namespace fusebox::converter
