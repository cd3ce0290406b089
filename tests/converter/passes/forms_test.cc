// SPDX-License-Identifier: Apache-2.0
// Canonical forms: FULLY_CONNECTED, convolutions, reshapes, transposes; equal things become one.
#include <gmock/gmock.h>

#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

using Forms = Rewritten;

TEST(DenseForms, AreMadeOfProductsWithConstants) {
  for (const bool turned : {false, true}) {
    Forms m;
    Attrs attrs;
    if (turned) attrs.Set("adj_y", true);
    const ValueId w = turned ? m.Weights({1, 4, 3}) : m.Weights({3, 4});
    const ValueId y = m.Op1(Op::kBatchMatmul, {m.In({-1, 5, 3}), w}, attrs);
    m.Finish({m.Op1(Op::kAdd, {y, m.Weights({4})})});
    EXPECT_EQ(m.Ops(), "FULLY_CONNECTED");
    EXPECT_TRUE(m.f.nodes[0]->attrs.b("keep_num_dims", false));
  }
  Forms computed, many, turned;
  computed.Finish({computed.Op1(Op::kBatchMatmul, {computed.In({2, 5, 3}), computed.In({3, 4})})});
  EXPECT_EQ(computed.Ops(), "BATCH_MATMUL");
  many.Finish({many.Op1(Op::kBatchMatmul, {many.In({2, 5, 3}), many.Weights({2, 3, 4})})});
  EXPECT_EQ(many.Ops(), "BATCH_MATMUL") << "a matrix for each element of the batch";
  turned.Finish({turned.Op1(Op::kBatchMatmul, {turned.In({2, 3, 5}), turned.Weights({3, 4})},
                            turned.With({{"adj_x", true}}))});
  EXPECT_EQ(Count(turned.f, Op::kBatchMatmul), 1u);
}

ValueId AroundDense(Forms& m, std::vector<int64_t> in, std::vector<int32_t> flat, std::vector<int32_t> out) {
  const ValueId x = m.Op1(Op::kReshape, {m.In(std::move(in)), m.Ints(flat)});
  return m.Op1(Op::kReshape, {m.Op1(Op::kFullyConnected, {x, m.Weights({4, 3}), kNoValue}), m.Ints(out)});
}

TEST(DenseForms, NeedNoReshapesAround) {
  Forms m, open, moved;
  m.Finish({AroundDense(m, {2, 5, 3}, {-1, 3}, {2, 5, 4})});
  EXPECT_EQ(m.Ops(), "FULLY_CONNECTED");
  open.Finish({AroundDense(open, {-1, 5, 3}, {-1, 3}, {-1, 5, 4})});
  EXPECT_EQ(open.Ops(), "FULLY_CONNECTED");
  moved.Finish({AroundDense(moved, {2, 5, 3}, {-1, 3}, {5, 2, 4})});
  EXPECT_EQ(moved.Ops(), "FULLY_CONNECTED RESHAPE") << "the rows are dealt out anew";
}

TEST(DenseForms, TakeAnInputThatIsNotFlat) {
  Forms m, open;
  m.Finish({m.Op1(Op::kFullyConnected,
                  {m.Op1(Op::kReshape, {m.In({2, 2, 3}), m.Ints({-1, 6})}), m.Weights({4, 6}), kNoValue})});
  EXPECT_EQ(m.Ops(), "FULLY_CONNECTED");
  const ValueId flat = open.Op1(Op::kReshape, {open.In({-1, 2, 3}), open.Ints({-1, 6})});
  open.Finish({open.Op1(Op::kFullyConnected, {flat, open.Weights({4, 6}), kNoValue})});
  EXPECT_EQ(open.Ops(), "RESHAPE FULLY_CONNECTED");
}

ValueId Padded(Forms& m, std::vector<int64_t> in, std::vector<int32_t> pads, int64_t stride, int64_t filter) {
  const int64_t channels = in[3];
  const ValueId x = m.Op1(Op::kPad, {m.In(std::move(in)), m.Pairs(pads)});
  return m.Op1(Op::kConv2D, {x, m.Weights({2, filter, filter, channels}), m.Weights({2})},
               m.Window(stride, "VALID"));
}

TEST(ConvForms, PadAsSameWhereThatIsTheSame) {
  Forms even, odd, open, open_stride, channels, uneven;
  even.Finish({Padded(even, {1, 6, 6, 2}, {0, 0, 0, 1, 0, 1, 0, 0}, 2, 3)});
  EXPECT_EQ(even.Ops(), "CONV_2D");
  odd.Finish({Padded(odd, {1, 7, 7, 2}, {0, 0, 0, 1, 0, 1, 0, 0}, 2, 3)});
  EXPECT_EQ(odd.Ops(), "PAD CONV_2D") << "SAME pads an odd size on both sides";
  open.Finish({Padded(open, {1, -1, -1, 2}, {0, 0, 1, 1, 1, 1, 0, 0}, 1, 3)});
  EXPECT_EQ(open.Ops(), "CONV_2D");
  open_stride.Finish({Padded(open_stride, {1, -1, 6, 2}, {0, 0, 0, 1, 0, 1, 0, 0}, 2, 3)});
  EXPECT_EQ(open_stride.Ops(), "PAD CONV_2D") << "the size is open";
  channels.Finish({Padded(channels, {1, 4, 4, 1}, {0, 0, 1, 1, 1, 1, 0, 0}, 1, 1)});
  EXPECT_EQ(channels.Ops(), "PAD CONV_2D") << "more than SAME pads";
  uneven.Finish({Padded(uneven, {1, 6, 6, 2}, {0, 0, 1, 0, 1, 0, 0, 0}, 2, 3)});
  EXPECT_EQ(uneven.Ops(), "PAD CONV_2D") << "before instead of behind";
}

ValueId InBlocks(Forms& m, std::vector<int64_t> in, std::vector<int32_t> pads, std::vector<int32_t> crops) {
  const ValueId x = m.Op1(Op::kSpaceToBatchNd, {m.In(std::move(in)), m.Ints({2, 2}), m.Pairs(pads)});
  const ValueId y = m.Op1(Op::kConv2D, {x, m.Weights({2, 3, 3, 2}), m.Weights({2})}, m.Window(1, "VALID"));
  return m.Op1(Op::kBatchToSpaceNd, {y, m.Ints({2, 2}), m.Pairs(crops)});
}

TEST(ConvForms, SayTheirDilation) {
  Forms valid, same, other;
  valid.Finish({InBlocks(valid, {1, 8, 7, 2}, {0, 0, 0, 1}, {0, 0, 0, 1})});
  EXPECT_EQ(valid.Ops(), "CONV_2D");
  EXPECT_EQ(valid.f.nodes[0]->attrs.str("padding", "SAME"), "VALID");
  same.Finish({InBlocks(same, {1, 8, 7, 2}, {2, 2, 2, 3}, {0, 0, 0, 1})});
  EXPECT_EQ(same.Ops(), "CONV_2D");
  EXPECT_EQ(same.f.nodes[0]->attrs.str("padding", "SAME"), "SAME");
  other.Finish({InBlocks(other, {1, 8, 8, 2}, {4, 2, 2, 2}, {0, 0, 0, 0})});
  EXPECT_EQ(other.Ops(), "SPACE_TO_BATCH_ND CONV_2D BATCH_TO_SPACE_ND");
}

// Keras' Conv1D: a dimension comes and goes around each convolution.
ValueId Conv1D(Forms& m, ValueId x, int64_t ins, int64_t outs) {
  const ValueId wide = m.Op1(Op::kExpandDims, {x, m.Ints({1})});
  const ValueId y =
      m.Op1(Op::kConv2D,
            {wide, m.Weights({outs, 1, 3, ins}), m.C({outs}, std::vector<float>(static_cast<size_t>(outs)))},
            m.Window());
  const ValueId narrow = m.Op1(Op::kSqueeze, {y}, m.With({{"squeeze_dims", std::vector<int64_t>{1}}}));
  return m.Op1(Op::kRelu, {m.Op1(Op::kAdd, {narrow, m.Weights({outs})})});
}

TEST(ReshapeForms, OfOneDimensionalConvolutionsCancel) {
  for (const int64_t steps : {6, -1}) {
    Forms m;
    m.Finish({Conv1D(m, Conv1D(m, m.In({1, steps, 2}), 2, 3), 3, 4)});
    EXPECT_EQ(Count(m.f, Op::kConv2D), 2u);
    EXPECT_EQ(m.f.nodes.size(), 4u) << m.Ops() << ": one in, one out";
  }
}

TEST(ReshapeForms, StayWhereTheChannelsAreDealtOut) {
  Forms m;
  const ValueId y =
      m.Op1(Op::kConv2D, {m.In({1, 2, 2, 2}), m.Weights({2, 1, 1, 2}), m.Weights({2})}, m.Window());
  m.Finish({m.Op1(Op::kAdd, {m.Op1(Op::kReshape, {y, m.Ints({1, 2, 4})}), m.Weights({4})})});
  EXPECT_EQ(m.Ops(), "CONV_2D RESHAPE ADD");
}

TEST(ReshapeForms, InARowAreOne) {
  Forms m, back;
  m.Finish({m.Op1(Op::kReshape, {m.Op1(Op::kReshape, {m.In({2, 6}), m.Ints({3, 4})}), m.Ints({12})})});
  EXPECT_EQ(m.Ops(), "RESHAPE");
  const ValueId x = back.In({2, 6});
  back.Finish({back.Op1(Op::kRelu, {back.Op1(Op::kReshape, {back.Op1(Op::kReshape, {x, back.Ints({3, 4})}),
                                                            back.Ints({2, 6})})})});
  EXPECT_EQ(back.Ops(), "RELU");
}

ValueId Strided(Forms& m, ValueId x, std::vector<int32_t> end, std::vector<int32_t> strides, Attrs attrs) {
  return m.Op1(Op::kStridedSlice, {x, m.Ints(std::vector<int32_t>(end.size())), m.Ints(end), m.Ints(strides)},
               std::move(attrs));
}

TEST(ReshapeForms, AreWhatTakesEverything) {
  Forms m, part, reversed;
  const Attrs grown = m.With({{"new_axis_mask", int64_t{2}}, {"end_mask", int64_t{5}}});
  m.Finish(
      {Strided(m, m.Op1(Op::kReshape, {m.In({1, 12, 1}), m.Ints({1, 12})}), {0, 0, 0}, {1, 1, 1}, grown)});
  EXPECT_EQ(m.Ops(), "RESHAPE");
  part.Finish({Strided(part, part.In({2, 12}), {2, 11}, {1, 1}, {})});
  EXPECT_EQ(part.Ops(), "STRIDED_SLICE");
  reversed.f.outputs = {reversed.Op1(
      Op::kStridedSlice, {reversed.In({12}), reversed.Ints({11}), reversed.Ints({0}), reversed.Ints({-1})},
      reversed.With({{"end_mask", int64_t{1}}}))};
  reversed.Finish(reversed.f.outputs);
  EXPECT_EQ(reversed.Ops(), "STRIDED_SLICE");
}

TEST(ReshapeForms, NeedNoSliceOfAll) {
  Forms m, part;
  m.Finish({m.Op1(Op::kRelu, {m.Op1(Op::kSlice, {m.In({2, 6}), m.Ints({0, 0}), m.Ints({-1, 6})})})});
  EXPECT_EQ(m.Ops(), "RELU");
  part.Finish({part.Op1(Op::kSlice, {part.In({2, 6}), part.Ints({0, 1}), part.Ints({2, 5})})});
  EXPECT_EQ(part.Ops(), "SLICE");
}

ValueId ToLast(Forms& m, ValueId x) { return m.Op1(Op::kTranspose, {x, m.Ints({0, 2, 3, 1})}); }
ValueId ToFirst(Forms& m, ValueId x) { return m.Op1(Op::kTranspose, {x, m.Ints({0, 3, 1, 2})}); }

// A convolution whose channels come first, with bias and activation.
ValueId FirstConv(Forms& m, ValueId x, int64_t ins, int64_t outs) {
  const ValueId y = m.Op1(Op::kConv2D,
                          {ToLast(m, x), m.Weights({outs, 3, 3, ins}),
                           m.C({outs}, std::vector<float>(static_cast<size_t>(outs)))},
                          m.Window());
  return m.Op1(Op::kRelu, {m.Op1(Op::kAdd, {ToFirst(m, y), m.Weights({outs, 1, 1})})});
}

TEST(LayoutForms, KeepChannelsLastBetweenInputAndOutput) {
  Forms m;
  const ValueId a = FirstConv(m, m.In({1, 2, 4, 4}), 2, 3), b = FirstConv(m, a, 3, 3);
  const ValueId sum = m.Op1(Op::kAdd, {a, b});
  const ValueId joined = m.Op1(Op::kConcatenation, {sum, a}, m.With({{"axis", int64_t{1}}}));
  const ValueId padded = m.Op1(Op::kPad, {joined, m.Pairs({0, 0, 0, 0, 1, 0, 0, 2})});
  const ValueId mean = m.Op1(Op::kMean, {padded, m.Ints({2, 3})});
  m.Finish({mean});
  EXPECT_EQ(m.Ops(), "TRANSPOSE CONV_2D CONV_2D ADD CONCATENATION PAD MEAN");
}

TEST(LayoutForms, StayWhereOthersReadTheTranspose) {
  Forms m;
  const ValueId t = ToFirst(m, m.In({1, 2, 3, 4}));
  m.Finish({m.Op1(Op::kTanh, {t}), t});
  EXPECT_EQ(m.Ops(), "TRANSPOSE TANH");
  Forms mixed;
  mixed.Finish({mixed.Op1(Op::kAdd, {ToFirst(mixed, mixed.In({1, 2, 3, 4})), mixed.In({1, 4, 2, 3})})});
  EXPECT_EQ(mixed.Ops(), "TRANSPOSE ADD") << "the other operand is not transposed";
}

// A file leaves out the type that is the schema's default; the tensor says it.
TEST(LayoutForms, PassACastThatDoesNotSayItsType) {
  Forms m;
  const ValueId x = m.f.AddInput(I32({1, 2, 3, 4}));
  const ValueId wide = m.f.AddNode(Op::kCast, {ToFirst(m, x)}, {F32({1, 4, 2, 3})}).results[0];
  m.f.outputs = {wide};
  m.Sign(m.f);
  EXPECT_EQ(m.Run(Optimize), "");
  EXPECT_EQ(m.Ops(), "CAST TRANSPOSE");
  EXPECT_EQ(m.f.value(m.f.nodes[0]->results[0]).type, F32({1, 2, 3, 4}));
}

TEST(LayoutForms, LeavesQuantizedGraphsAsTheyAre) {
  Forms m;
  const auto scale = std::make_shared<const Quant>(Quant{{0.5f}, {}, {}, {3}});
  const ValueId x = m.f.AddInput({DType::kI8, Shape({1, 2, 3, 4})});
  m.f.value(x).quant = scale;
  const ValueId t =
      m.f.AddNode(Op::kTranspose, {x, m.Ints({0, 3, 1, 2})}, {{DType::kI8, Shape({1, 4, 2, 3})}}).results[0];
  const ValueId y = m.f.AddNode(Op::kRelu, {t}, {{DType::kI8, Shape({1, 4, 2, 3})}}).results[0];
  m.f.value(t).quant = m.f.value(y).quant = scale;
  m.f.outputs = {y};
  m.Sign(m.f);
  EXPECT_EQ(m.Run(Optimize), "");
  EXPECT_EQ(m.Ops(), "TRANSPOSE RELU");
}

TEST(LayoutForms, TransposesInARowAreOne) {
  Forms m, trivial;
  m.Finish({m.Op1(Op::kTranspose,
                  {m.Op1(Op::kTranspose, {m.In({2, 3, 4}), m.Ints({2, 0, 1})}), m.Ints({0, 2, 1})})});
  EXPECT_EQ(m.Ops(), "TRANSPOSE");
  trivial.Finish({trivial.Op1(Op::kTranspose, {trivial.In({1, 3, 4}), trivial.Ints({1, 0, 2})})});
  EXPECT_EQ(trivial.Ops(), "RESHAPE") << "only dimensions of one element move";
}

TEST(Sharing, MakesEqualConstantsAndNodesOne) {
  Forms m;
  const ValueId x = m.In({2, 3});
  const ValueId a = m.Op1(Op::kMul, {x, m.C({3}, {1, 2, 3})}), b = m.Op1(Op::kMul, {x, m.C({3}, {1, 2, 3})});
  m.Finish({m.Op1(Op::kSub, {m.Op1(Op::kTanh, {a}), m.Op1(Op::kSin, {b})})});
  EXPECT_EQ(Count(m.f, Op::kMul), 1u);
}

TEST(Sharing, LeavesOutputsAndWhatDiffers) {
  Forms m;
  const ValueId x = m.In({2, 3});
  const ValueId a = m.Op1(Op::kTanh, {x}), b = m.Op1(Op::kTanh, {x});
  const ValueId one = m.C({3}, {1, 2, 3}), two = m.C({1, 3}, {1, 2, 3});
  m.Finish({a, b, m.Op1(Op::kMul, {x, one}), m.Op1(Op::kMul, {x, two}), m.C({2}, {1, 2}), m.C({2}, {1, 2})});
  EXPECT_EQ(Count(m.f, Op::kTanh), 2u) << "each output is a tensor of its own";
  EXPECT_EQ(Count(m.f, Op::kMul), 2u);
  EXPECT_NE(m.f.outputs[4], m.f.outputs[5]);
}

TEST(Sharing, LeavesTheStatesOfTwoOps) {
  Forms m;
  const auto rnn = [&](ValueId x, ValueId state) {
    Node& node = m.f.AddNode(Op::kUnidirectionalSequenceRnn,
                             {x, m.Weights({2, 3}), m.Weights({2, 2}), m.Weights({2}), state},
                             {F32({1, 4, 2}), F32({1, 2})});
    return node.results[0];
  };
  const ValueId x = m.In({1, 4, 3}), a = m.C({1, 2}, {0, 0}), b = m.C({1, 2}, {0, 0});
  m.f.outputs = {rnn(x, a), rnn(x, b)};
  m.Sign(m.f);
  EXPECT_EQ(m.Run(Optimize), "");
  EXPECT_EQ(m.f.nodes[0]->operands[4], a);
  EXPECT_EQ(m.f.nodes[1]->operands[4], b);
}

}  // namespace
}  // namespace fusebox::converter
