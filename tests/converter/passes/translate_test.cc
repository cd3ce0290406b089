// SPDX-License-Identifier: Apache-2.0
// Every row of the tables, translated, run on the host, and held against TensorFlow's definition.
#include <gmock/gmock.h>

#include <set>

#include "host/verify/cases.h"
#include "tests/converter/passes/bench.h"
#include "tests/converter/passes/translate_cases.h"

namespace fusebox::converter {
namespace {

using ::testing::Contains;

Node& Source(Function& f, const SourceOp& source, std::vector<Tensor>* inputs) {
  std::vector<ValueId> operands;
  for (size_t i = 0; i < source.operands.size(); ++i) {
    const bool computed = i < source.computed;
    operands.push_back(computed ? f.AddInput(source.operands[i].type) : f.AddConst(source.operands[i]));
    if (computed) inputs->push_back(source.operands[i]);
  }
  Node& node = f.AddNode(Op::kOpaque, operands, std::vector<Type>(source.results), source.attrs);
  node.name = source.op;
  if (source.results) f.outputs = {node.results[0]};
  return node;
}

void Check(const SourceOp& source) {
  SCOPED_TRACE(source.op + " " + ToString(source.attrs));
  Bench bench;
  Function& f = bench.Add("main");
  std::vector<Tensor> inputs;
  Source(f, source, &inputs);
  bench.Sign(f);
  EXPECT_EQ(bench.Run(FoldAndTranslate), "");
  ASSERT_EQ(Count(f, Op::kOpaque), 0u) << ToText(f);
  if (source.results == 0) return;
  const auto outputs = bench.Compute("main", inputs);
  ASSERT_EQ(outputs.size(), 1u);
  const auto values = verify::ToDoubles(outputs[0]);
  ASSERT_EQ(values.size(), source.expected.size()) << ToText(f);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], source.expected[i], 1e-5) << "at " << i;
}

TEST(Translate, ComputesWhatTheSourceOpsDefine) {
  for (const auto& cases :
       {ElementwiseCases(), ComposedCases(), BuiltinCases(), ShapeCases(), MatrixCases(), VolumeCases()})
    for (const SourceOp& source : cases) Check(source);
}

TEST(Translate, HasACaseForEveryRow) {
  std::set<std::string> tried;
  for (const auto& cases :
       {ElementwiseCases(), ComposedCases(), BuiltinCases(), ShapeCases(), MatrixCases(), VolumeCases()})
    for (const SourceOp& source : cases) tried.insert(source.op);
  for (const auto& table :
       {ElementwiseTable(), ComposedTable(), BuiltinTable(), ShapeTable(), MatrixTable(), VolumeTable()})
    for (const TranslateRow& row : table) EXPECT_THAT(tried, Contains(std::string(row.op)));
}

// The kernels are not in plugins/cpu: what is written is looked at.
TEST(Translate, GivesAsManyBoxesAsAreSelected) {
  const std::vector<Tensor> boxes = {F({3, 4}, {0}), F({3}, {0}), I({}, {2}), F({}, {0.5f}), F({}, {0.1f})};
  for (const auto& [op, operands, padded] : {std::tuple("NonMaxSuppressionV2", 4, false),
                                             {"NonMaxSuppressionV3", 5, false},
                                             {"NonMaxSuppressionV4", 5, true}}) {
    Bench bench;
    Function& f = bench.Add("main");
    std::vector<Tensor> inputs;
    Source(f, {op, {boxes.begin(), boxes.begin() + operands}, {}, A("pad_to_max_output_size", padded), 2, 2},
           &inputs);
    bench.Sign(f);
    EXPECT_EQ(bench.Run(FoldAndTranslate), "");
    EXPECT_EQ(Count(f, Op::kOpaque), 0u) << ToText(f);
    EXPECT_EQ(Count(f, Op::kNonMaxSuppressionV4), 1u);
    EXPECT_EQ(Count(f, Op::kSlice), padded ? 0u : 1u);
  }
}

TEST(Translate, WritesRowsInPlace) {
  const Tensor x = F({3, 2}, {1, 2, 3, 4, 5, 6});
  Check({"Empty", {I({2}, {2, 1})}, {0, 0}, A("dtype", DType::kF32)});
  Check({"DeepCopy", {x}, {1, 2, 3, 4, 5, 6}});
  Check({"InplaceUpdate", {x, I({1}, {1}), F({1, 2}, {8, 9})}, {1, 2, 8, 9, 5, 6}, {}, 1, 3});
  Check({"InplaceUpdate", {x, I({1}, {-1}), F({1, 2}, {8, 9})}, {1, 2, 3, 4, 8, 9}, {}, 1, 3});
  Check({"InplaceUpdate", {x, I({2}, {2, 0}), F({2, 2}, {7, 8, 9, 10})}, {9, 10, 3, 4, 7, 8}, {}, 1, 3});
  Check({"InplaceUpdate", {F({2}, {1, 2}), I({1}, {1}), F({1}, {9})}, {1, 9}, {}, 1, 3});
}

// Every op, with each number of operands from none to four: refused, never a crash or a broken graph.
TEST(Translate, SurvivesAnyNumberOfOperands) {
  for (const auto& table : {ElementwiseTable(), ComposedTable(), BuiltinTable(), SuppressionTable(),
                            ShapeTable(), MatrixTable(), VolumeTable(), EinsumTable(), StateTable()}) {
    for (const TranslateRow& row : table) {
      for (size_t count = 0; count < 5; ++count) {
        for (size_t results = 0; results < 3; ++results) {
          Bench bench;
          Function& f = bench.Add("main");
          std::vector<Tensor> inputs;
          Source(f, {std::string(row.op), std::vector<Tensor>(count, F({2}, {1, 2})), {}, {}, results, count},
                 &inputs);
          const auto translated = TranslateFunction(bench.module, f, *BuiltIn());
          ASSERT_TRUE(translated) << row.op;
          const Status sound = Verify(bench.module);
          EXPECT_TRUE(sound) << row.op << " with " << count << " operands: " << sound.error().message;
        }
      }
    }
  }
}

TEST(Translate, RefusesToPadAMaximumWithZeros) {
  Bench bench;
  Function& f = bench.Add("main");
  std::vector<Tensor> inputs;
  Attrs attrs = A("padding", "EXPLICIT", "ksize", std::vector<int64_t>{1, 2, 2, 1}, "strides",
                  std::vector<int64_t>{1, 1, 1, 1});
  attrs.Set("explicit_paddings", std::vector<int64_t>{0, 0, 1, 1, 1, 1, 0, 0});
  Source(f, {"MaxPool", {F({1, 2, 2, 1}, {-1, -2, -3, -4})}, {}, attrs}, &inputs);
  bench.Sign(f);
  EXPECT_THAT(bench.Run(RequireLegal), ::testing::HasSubstr("padding EXPLICIT of a pool"));
}

TEST(Untranslatable, OpsSayWhatCanBeDone) {
  EXPECT_THAT(WhyUntranslatable("XlaCallModule"), ::testing::HasSubstr("StableHLO"));
  EXPECT_THAT(WhyUntranslatable("Merge"), ::testing::HasSubstr("control flow of TensorFlow 1"));
  EXPECT_THAT(WhyUntranslatable("TensorArrayV3"), ::testing::HasSubstr("array of TensorFlow 1"));
  EXPECT_THAT(WhyUntranslatable("ParseExampleV2"), ::testing::HasSubstr("signature that takes tensors"));
  EXPECT_THAT(WhyUntranslatable("RaggedTensorToTensor"), ::testing::HasSubstr("padded"));
  EXPECT_EQ(WhyUntranslatable("Betainc"), "there is no translation of this op");
  // None of them has a translation that this would hide.
  for (const char* op :
       {"XlaCallModule", "Merge", "TensorArrayV3", "ParseExampleV2", "RaggedTensorToTensor", "StringSplitV2"})
    EXPECT_EQ(FindTranslation(op), nullptr) << op;
}

}  // namespace
}  // namespace fusebox::converter
