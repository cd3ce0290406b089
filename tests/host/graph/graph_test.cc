// SPDX-License-Identifier: Apache-2.0
#include "host/graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "host/graph/versions.h"

namespace fusebox {
namespace {

const Type kRow{DType::kF32, {1, 4}};

TEST(Ops, StandInTheOrderOfTheirCodes) {
  for (int code = 0; code < 210; ++code) {
    const auto op = FindOp(code);
    ASSERT_TRUE(op) << code;
    EXPECT_EQ(Info(*op).code, code);
    EXPECT_EQ(FindOp(Name(*op)), op);
  }
  EXPECT_FALSE(FindOp(210)) << "internal ops have no code";
  EXPECT_FALSE(FindOp(-1));
}

TEST(Ops, KnowTheirStateOperands) {
  const auto lstm = StateOperands(Op::kUnidirectionalSequenceLstm);
  EXPECT_EQ(std::vector<int>(lstm.begin(), lstm.end()), (std::vector<int>{18, 19}));
  EXPECT_EQ(StateOperands(Op::kBidirectionalSequenceLstm).size(), 4u);
  EXPECT_TRUE(StateOperands(Op::kConv2D).empty());
}

TEST(Function, CompactsWithoutChangingItsMeaning) {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput(kRow, "x");
  f.AddConst<float>(DType::kF32, {1}, {1}, "unused");
  Node& dropped = f.AddNode(Op::kAbs, {x}, {kRow});
  f.outputs = f.AddNode(Op::kRelu, {x}, {kRow}).results;
  auto copy = Clone(module);
  for (auto& node : copy->functions[0]->nodes) {
    if (node->is(Op::kAbs)) node.reset();
  }
  copy->functions[0]->Compact();
  EXPECT_EQ(copy->functions[0]->value_count(), 2);
  EXPECT_EQ(copy->functions[0]->nodes.size(), 1u);
  EXPECT_TRUE(Verify(*copy));
  EXPECT_FALSE(Equal(module, *copy)) << "a node less";
  EXPECT_EQ(Describe(f, dropped), "node 0 ABS");
}

TEST(Inline, PutsTheBodyInPlaceOfTheCall) {
  Module module;
  Function& main = module.Add("main");
  Function& f = module.Add("f");
  const ValueId a = f.AddInput(kRow, "a"), b = f.AddInput(kRow, "b");
  const ValueId sum = f.AddNode(Op::kAdd, {a, b}, {kRow}).results[0];
  f.outputs = {sum, sum, a};  // returned twice, and passed through
  const ValueId x = main.AddInput(kRow, "x");
  Attrs attrs;
  attrs.Set("subgraph", FunctionRef{"f"});
  Node& call = main.AddNode(Op::kCall, {x, x}, {kRow, kRow, kRow}, attrs);
  call.location.name = "outer";
  main.value(call.results[0]).name = "sum";
  const auto results = call.results;
  main.outputs = results;
  InlineAt(main, 0, f);
  ASSERT_EQ(main.nodes.size(), 1u);
  EXPECT_EQ(main.nodes[0]->op, Op::kAdd);
  EXPECT_EQ(main.nodes[0]->operands, (std::vector<ValueId>{x, x}));
  EXPECT_EQ(main.outputs, (std::vector<ValueId>{results[0], results[0], x}));
  EXPECT_EQ(main.value(main.outputs[0]).name, "sum");
  RemoveUnreachable(module);
  EXPECT_EQ(module.functions.size(), 1u);
  EXPECT_TRUE(Verify(module, Strictness::kWritable));
}

TEST(CopyInto, BringsEverythingThatIsReachedUnderFreeNames) {
  Module from, to;
  to.Add("main");
  to.Add("inner");
  Function& outer = from.Add("outer");
  from.Add("inner");
  Attrs attrs;
  attrs.Set("init_subgraph_index", FunctionRef{"inner"});
  outer.AddNode(Op::kCallOnce, {}, {}, attrs);
  EXPECT_EQ(CopyInto(from, outer, to), "outer");
  EXPECT_EQ(to.Find("outer")->nodes[0]->attrs.function("init_subgraph_index")->name, "inner_1");
  EXPECT_TRUE(Verify(to));
}

TEST(Text, ReadsAsOneLinePerNode) {
  Module module;
  Function& main = module.Add("main");
  const ValueId x = main.AddInput(Type{DType::kF32, {-1, 3}}, "x");
  const ValueId w = main.AddConst<float>(DType::kF32, {2, 3}, std::vector<float>(6), "w");
  Attrs attrs;
  attrs.Set("fused_activation_function", "RELU");
  main.outputs =
      main.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {Type{DType::kF32, {-1, 2}}}, attrs).results;
  module.signatures.push_back({"serving_default", "main", {"x"}, {"y"}});
  EXPECT_EQ(ToText(module),
            "signature serving_default = main(x) -> (y)\n"
            "function main(%0 \"x\": f32[?,3]) {\n"
            "  %1 \"w\": f32[2,3] = const\n"
            "  %2: f32[?,2] = FULLY_CONNECTED(%0, %1, _) {fused_activation_function=RELU}\n"
            "  return %2\n"
            "}\n");
}

TEST(Versions, AreTheLowestThatCanSayIt) {
  Function f("f");
  const ValueId x = f.AddInput(kRow), w = f.AddValue({DType::kF32, {4, 4}}),
                w8 = f.AddValue({DType::kI8, {4, 4}});
  const ValueId b = f.AddValue({DType::kF32, {4}});
  EXPECT_EQ(LowestVersion(f, f.AddNode(Op::kFullyConnected, {x, w, b}, {kRow})), 1);
  EXPECT_EQ(LowestVersion(f, f.AddNode(Op::kFullyConnected, {x, w}, {kRow})), 6);
  EXPECT_EQ(LowestVersion(f, f.AddNode(Op::kFullyConnected, {x, w8, b}, {kRow})), 3);
  Attrs batch_major;
  batch_major.Set("time_major", false);
  EXPECT_EQ(LowestVersion(f, f.AddNode(Op::kBidirectionalSequenceLstm, {x, w, w}, {kRow}, batch_major)), 2);
  EXPECT_EQ(LowestVersion(f, f.AddNode(Op::kBroadcastTo, {x, b}, {kRow})), 2);
  const ValueId words = f.AddValue({DType::kString, {4}});
  EXPECT_EQ(LowestVersion(f, f.AddNode(Op::kTile, {words, b}, {kRow})), 2);
  EXPECT_EQ(LowestVersion(f, f.AddNode(Op::kFill, {b, words}, {kRow})), 2);
  EXPECT_EQ(LowestVersion(f, f.AddNode(Op::kReshape, {words, b}, {kRow})), 1);
}

// The versions above 1 of 8-bit forms that TFLite 2.9 registers (tensorflow/lite/kernels/register.cc).
TEST(Versions, OfEightBitsAreKnownToTFLite29) {
  const std::map<Op, int> known = {{Op::kAdd, 4},
                                   {Op::kAveragePool2D, 3},
                                   {Op::kConcatenation, 3},
                                   {Op::kConv2D, 6},
                                   {Op::kDepthwiseConv2D, 6},
                                   {Op::kDepthToSpace, 2},
                                   {Op::kFullyConnected, 9},
                                   {Op::kL2Normalization, 2},
                                   {Op::kLogistic, 3},
                                   {Op::kLstm, 4},
                                   {Op::kMaxPool2D, 3},
                                   {Op::kMul, 5},
                                   {Op::kRelu, 3},
                                   {Op::kRelu6, 3},
                                   {Op::kResizeBilinear, 4},
                                   {Op::kSoftmax, 3},
                                   {Op::kSpaceToDepth, 2},
                                   {Op::kTanh, 3},
                                   {Op::kPad, 4},
                                   {Op::kGather, 5},
                                   {Op::kBatchToSpaceNd, 3},
                                   {Op::kSpaceToBatchNd, 3},
                                   {Op::kTranspose, 5},
                                   {Op::kMean, 3},
                                   {Op::kSub, 5},
                                   {Op::kSqueeze, 2},
                                   {Op::kReverseV2, 3},
                                   {Op::kUnidirectionalSequenceLstm, 3},
                                   {Op::kStridedSlice, 6},
                                   {Op::kSplit, 4},
                                   {Op::kLogSoftmax, 2},
                                   {Op::kMaximum, 4},
                                   {Op::kArgMax, 3},
                                   {Op::kMinimum, 4},
                                   {Op::kPadV2, 4},
                                   {Op::kSlice, 5},
                                   {Op::kTransposeConv, 3},
                                   {Op::kTile, 3},
                                   {Op::kSum, 2},
                                   {Op::kArgMin, 3},
                                   {Op::kReduceMax, 3},
                                   {Op::kReduceMin, 3},
                                   {Op::kPack, 3},
                                   {Op::kUnpack, 4},
                                   {Op::kResizeNearestNeighbor, 4},
                                   {Op::kLeakyRelu, 2},
                                   {Op::kMirrorPad, 2},
                                   {Op::kSplitV, 2}};
  for (const OpInfo& info : AllOps()) {
    if (info.quantizes == Quantizes::kNone) continue;
    Function f("f");
    const ValueId bytes = f.AddInput({DType::kI8, {1, 2, 2, 2}});
    const std::vector<ValueId> operands(static_cast<size_t>(std::max(info.operands.min, 1)), bytes);
    const Node& node = f.AddNode(info.op, operands, {f.value(bytes).type});
    const auto found = known.find(info.op);
    EXPECT_LE(LowestVersion(f, node), found == known.end() ? 1 : found->second) << info.name;
  }
}

TEST(Types, CountBytesWithoutOverflowing) {
  EXPECT_EQ(ByteSize({DType::kI4, {3}}), 2u);
  EXPECT_EQ(ByteSize({DType::kF32, {0, 5}}), 0u);
  EXPECT_FALSE(ByteSize({DType::kF32, {-1, 5}}));
  EXPECT_FALSE(ByteSize({DType::kString, {2}}));
  EXPECT_FALSE(ByteSize({DType::kF64, {int64_t{1} << 62}}));
  for (int i = 0; i <= static_cast<int>(DType::kVariant); ++i) {
    EXPECT_EQ(ParseDType(Name(static_cast<DType>(i))), static_cast<DType>(i));
  }
}

}  // namespace
}  // namespace fusebox
