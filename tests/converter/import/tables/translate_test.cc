// SPDX-License-Identifier: Apache-2.0
// Every row of the tables, translated, run on the host, and compared with TensorFlow's definition.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <set>

#include "host/graph/values.h"
#include "tests/converter/import/tables/programs.h"
#include "tests/testing/pipeline.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;

Node& Source(Function& f, const SourceOp& source, std::vector<Tensor>* inputs) {
  std::vector<ValueId> operands;
  for (size_t i = 0; i < source.operands.size(); ++i) {
    const bool computed = i < source.computed;
    operands.push_back(computed ? f.AddInput(source.operands[i].type) : f.AddConst(source.operands[i]));
    if (computed) inputs->push_back(source.operands[i]);
  }
  Node& node = f.AddNode(Op::kOpaque, operands, std::vector<Type>(source.results), source.attrs);
  node.name = source.op;
  if (source.results) f.outputs = {node.results[source.result]};
  return node;
}

// The main function of a bench: the op, folded and translated. What it computes from is added to `inputs`.
Function& Translated(Bench& bench, const SourceOp& source, std::vector<Tensor>& inputs) {
  Function& f = bench.Add("main");
  Source(f, source, &inputs);
  bench.Sign(f);
  EXPECT_EQ(bench.Run(FoldToFixpoint), "");
  return f;
}

void Check(const SourceOp& source) {
  SCOPED_TRACE(source.op + " " + ToString(source.attrs));
  Bench bench;
  std::vector<Tensor> inputs;
  Function& f = Translated(bench, source, inputs);
  ASSERT_EQ(Count(f, Op::kOpaque), 0u) << ToText(f);
  if (source.results == 0) return;
  const auto outputs = bench.Compute("main", inputs);
  ASSERT_EQ(outputs.size(), 1u);
  const auto values = ToDoubles(outputs[0]);
  ASSERT_EQ(values.size(), source.expected.size()) << ToText(f);
  for (size_t i = 0; i < values.size(); ++i) {
    const double wanted = source.expected[i];
    const double distance = source.digits > 0 ? source.digits * std::abs(wanted) : 1e-5;
    if (std::isfinite(wanted)) EXPECT_NEAR(values[i], wanted, distance) << "at " << i;
    else
      EXPECT_TRUE(std::isnan(wanted) ? std::isnan(values[i]) : values[i] == wanted)
          << values[i] << " at " << i;
  }
}

// With the kernels of the plugins that ops of the tables need.
void Check(const Program& program) {
  SCOPED_TRACE(program.op);
  static const auto registry = testing::Plugins({"fusebox.vision"});
  ASSERT_TRUE(registry) << registry.error().message;
  Bench bench;
  ProgramWriter writer(bench);
  program.write(writer);
  writer.Finish();
  Context context{bench.module, **registry, bench.options, bench.report};
  const Status passed = RunPasses(context);
  ASSERT_TRUE(passed) << passed.error().message;
  ASSERT_EQ(bench.module.signatures.size(), 1u);
  const auto runnable = run::Program::Create(bench.module, *registry);
  ASSERT_TRUE(runnable) << runnable.error().message << ToText(bench.module);
  const auto runner = run::Runner::Create(**runnable, 1);
  for (int run = 1; run <= program.runs; ++run) {
    const auto outputs = (*runner)->Run(bench.module.signatures[0].function, program.inputs);
    ASSERT_TRUE(outputs) << outputs.error().message << ToText(bench.module);
    if (run == program.runs) program.check(*outputs);
  }
}

std::vector<Program> AllPrograms() {
  std::vector<Program> all;
  for (const auto& programs : {StatePrograms(), LookupPrograms(), RandomPrograms(), SuppressionPrograms()})
    all.insert(all.end(), programs.begin(), programs.end());
  return all;
}

std::vector<std::string> AllRows() {
  std::vector<std::string> rows;
  for (const auto& table : TranslationTables())
    for (const TranslateRow& row : table) rows.emplace_back(row.op);
  return rows;
}

class EachRow : public ::testing::TestWithParam<std::string> {};

TEST_P(EachRow, ComputesWhatTheSourceOpDefines) {
  int cases = 0;
  for (const SourceOp& source : AllSourceOps())
    if (source.op == GetParam()) Check(source), ++cases;
  for (const Program& program : AllPrograms())
    if (program.op == GetParam()) Check(program), ++cases;
  EXPECT_GT(cases, 0) << "the row has no case";
}

INSTANTIATE_TEST_SUITE_P(Translate, EachRow, ::testing::ValuesIn(AllRows()),
                         [](const auto& info) { return info.param; });

TEST(Translate, HasACaseForEveryRow) {
  std::set<std::string> tried;
  for (const SourceOp& source : AllSourceOps()) tried.insert(source.op);
  for (const Program& program : AllPrograms()) tried.insert(program.op);
  const auto rows = AllRows();
  EXPECT_EQ(tried, std::set<std::string>(rows.begin(), rows.end()));
  EXPECT_EQ(std::set<std::string>(rows.begin(), rows.end()).size(), rows.size()) << "an op is in two tables";
}

// The kernels are not in plugins/cpu: what is written is looked at.
TEST(Translate, GivesAsManyBoxesAsAreSelected) {
  const std::vector<Tensor> boxes = {F({3, 4}, {0}), F({3}, {0}), I({}, {2}), F({}, {0.5f}), F({}, {0.1f})};
  for (const auto& [op, operands, padded] : {std::tuple("NonMaxSuppressionV2", 4, false),
                                             {"NonMaxSuppressionV3", 5, false},
                                             {"NonMaxSuppressionV4", 5, true}}) {
    Bench bench;
    std::vector<Tensor> inputs;
    Function& f = Translated(
        bench, {op, {boxes.begin(), boxes.begin() + operands}, {}, A("pad_to_max_output_size", padded), 2, 2},
        inputs);
    EXPECT_EQ(Count(f, Op::kOpaque), 0u) << ToText(f);
    EXPECT_EQ(Count(f, Op::kNonMaxSuppressionV4), 1u);
    EXPECT_EQ(Count(f, Op::kSlice), padded ? 0u : 1u);
  }
}

TEST(Translate, SuppressesWithScores) {
  const Tensor boxes = F({3, 4}, std::vector<float>(12)), scores = F({3}, {0, 0, 0}), most = I({}, {2});
  const Tensor overlap = F({}, {0.5f}), lowest = F({}, {0.1f}), sigma = F({}, {0.5f});
  for (const bool padded : {false, true}) {
    Bench bench;
    std::vector<Tensor> inputs;
    Attrs attrs = A("pad_to_max_output_size", padded);
    Function& f = Translated(
        bench, {"NonMaxSuppressionV5", {boxes, scores, most, overlap, lowest, sigma}, {}, attrs, 3, 2, 1},
        inputs);
    EXPECT_EQ(Count(f, Op::kOpaque), 0u) << ToText(f);
    EXPECT_EQ(Count(f, Op::kNonMaxSuppressionV5), 1u);
    EXPECT_EQ(Count(f, Op::kSlice), padded ? 0u : 1u);
  }
  Bench bench;
  std::vector<Tensor> inputs;
  Function& f = Translated(
      bench, {"NonMaxSuppression", {boxes, scores, most}, {}, A("iou_threshold", 0.25), 1, 2}, inputs);
  ASSERT_EQ(Count(f, Op::kNonMaxSuppressionV4), 1u);
  for (const auto& node : f.nodes) {
    if (!node->is(Op::kNonMaxSuppressionV4)) continue;
    EXPECT_EQ(f.value(node->operands[3]).data.As<float>()[0], 0.25f);
  }
}

// Every op, with each number of operands from none to four: refused, never a crash or a broken graph.
TEST(Translate, SurvivesAnyNumberOfOperands) {
  for (const auto& table : TranslationTables()) {
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

// Why the op is not translated; empty where it is.
std::string Refusal(const SourceOp& source) {
  Bench bench;
  Function& f = bench.Add("main");
  std::vector<Tensor> inputs;
  const Node node = Source(f, source, &inputs);
  Translation translation(bench.module, f, *BuiltIn(), node);
  const Status status = FindTranslation(source.op)(translation);
  return status ? "" : status.error().message;
}

TEST(Translate, SurvivesOpsThatAFileDefinesWithoutOutputs) {
  const Tensor window = I({4}, {1, 2, 2, 1});
  EXPECT_EQ(Refusal({"MaxPoolV2", {F({1, 2, 2, 1}, {1, 2, 3, 4}), window, window}, {}, {}, 0}), "");
  for (const char* op : {"TensorListReserve", "TensorListGetItem", "TensorListSetItem", "TensorListStack"})
    EXPECT_THAT(Refusal({op, {I({1}, {2}), I({}, {3}), I({}, {4})}, {}, {}, 0}), HasSubstr("0 results"));
}

TEST(Translate, RefusesTooManyParts) {
  const SourceOp most{"DynamicPartition", {F({2}, {1, 2}), I({2}, {0, 1})}, {}, {}, 1024};
  EXPECT_EQ(Refusal(most), "");
  SourceOp more = most;
  more.results = 1025;
  EXPECT_THAT(Refusal(more), HasSubstr("num_partitions is 1025, more than 1024"));
}

TEST(Translate, ChecksThatBitsFit) {
  const Attrs f64 = A("type", DType::kF64);
  EXPECT_THAT(Refusal({"Bitcast", {F({3}, {1, 2, 3})}, {}, f64}),
              HasSubstr("last dimension is 3, expected 2"));
  EXPECT_EQ(Refusal({"Bitcast", {F({3, 2}, {1, 2, 3, 4, 5, 6})}, {}, f64}), "");
}

TEST(Translate, TakesAnyNumberOfBoxesPerClass) {
  Bench bench;
  Function& f = bench.Add("main");
  std::vector<Tensor> inputs;
  const Tensor boxes = F({1, 3, 1, 4}, std::vector<float>(12)), scores = F({1, 3, 4}, std::vector<float>(12));
  Source(f,
         {"CombinedNonMaxSuppression",
          {boxes, scores, L({}, {int64_t{1} << 62}), L({}, {5}), F({}, {0.5f}), F({}, {0.1f})},
          {},
          A("pad_per_class", true),
          4,
          2},
         &inputs);
  bench.Sign(f);
  EXPECT_EQ(bench.Run(FoldToFixpoint), "");
  for (const auto& node : f.nodes) {
    if (!node->is(Op::kTopkV2)) continue;
    EXPECT_EQ(f.value(node->operands[1]).data.As<int32_t>()[0], 5);
  }
  EXPECT_EQ(Count(f, Op::kTopkV2), 1u) << ToText(f);
}

TEST(Translate, DrawsIntegersOfAnyWidth) {
  Bench bench;
  std::vector<Tensor> inputs;
  Function& f = Translated(
      bench, {"RandomUniformInt", {I({2}, {2, 3}), I({}, {INT32_MIN}), I({}, {INT32_MAX})}, {}, {}, 1, 0},
      inputs);
  ASSERT_EQ(Count(f, Op::kMul), 1u) << ToText(f);
  for (const auto& node : f.nodes) {
    if (!node->is(Op::kMul)) continue;
    EXPECT_EQ(f.value(node->operands[1]).data.As<float>()[0], 4294967296.0f);
  }
}

TEST(Translate, PadsAMaximumWithWhatIsBelowAll) {
  const Tensor x = F({1, 2, 2, 1}, {-1, -2, -3, -4});
  Attrs attrs = A("padding", "EXPLICIT", "ksize", std::vector<int64_t>{1, 2, 2, 1}, "strides",
                  std::vector<int64_t>{1, 1, 1, 1});
  attrs.Set("explicit_paddings", std::vector<int64_t>{0, 0, 1, 0, 0, 1, 0, 0});
  Check({"MaxPool", {x}, {-1, -2, -1, -2}, attrs});
}

TEST(Translate, NormalizesBatchesByTheirOwnMoments) {
  const Tensor x = F({2, 1, 2, 2}, {1, 10, 3, 20, 5, 30, 7, 40});
  const Tensor gamma = F({2}, {1, 2}), beta = F({2}, {0, 5}), none = F({0}, {});
  const double s = 1 / std::sqrt(5.0), l = 20 / std::sqrt(125.0);
  const std::vector<double> y = {-3 * s, 5 - 1.5 * l, -s, 5 - 0.5 * l, s, 5 + 0.5 * l, 3 * s, 5 + 1.5 * l};
  Check({"FusedBatchNormV3", {x, gamma, beta, none, none}, y, A("is_training", true, "epsilon", 0.0), 6});
  Check({"FusedBatchNormV3",
         {x, gamma, beta, none, none},
         y,
         A("is_training", true, "epsilon", 0.0, "exponential_avg_factor", 0.25),
         6});
  const Tensor planes = F({2, 2, 1, 2}, {1, 3, 10, 20, 5, 7, 30, 40});
  Check({"FusedBatchNormV3",
         {planes, gamma, beta, none, none},
         {y[0], y[2], y[1], y[3], y[4], y[6], y[5], y[7]},
         A("is_training", true, "epsilon", 0.0, "data_format", "NCHW"),
         6});
}

// What TensorFlow defines, in double: moments of x over all dims but the channels' (mean of squares of what
// is centerd), the variance that it hands on of a sample, and both as running averages when the factor is
// below 1.
struct Trained {
  std::vector<double> y, mean, variance;
};
Trained TrainedOn(const Tensor& x, int channel, const std::vector<Tensor>& operands, double factor,
                  double epsilon) {
  const auto& dims = x.type.shape.dims();
  const auto values = ToDoubles(x), gamma = ToDoubles(operands[0]), beta = ToDoubles(operands[1]),
             old_mean = ToDoubles(operands[2]), old_variance = ToDoubles(operands[3]);
  const size_t channels = gamma.size(), count = values.size() / channels;
  size_t step = 1;
  for (size_t d = static_cast<size_t>(channel) + 1; d < dims.size(); ++d)
    step *= static_cast<size_t>(dims[d]);
  const auto at = [&](size_t i) { return i / step % channels; };
  std::vector<double> mean(channels), variance(channels);
  for (size_t i = 0; i < values.size(); ++i) mean[at(i)] += values[i] / static_cast<double>(count);
  for (size_t i = 0; i < values.size(); ++i)
    variance[at(i)] += std::pow(values[i] - mean[at(i)], 2) / static_cast<double>(count);
  Trained out;
  for (size_t i = 0; i < values.size(); ++i)
    out.y.push_back((values[i] - mean[at(i)]) * gamma[at(i)] / std::sqrt(variance[at(i)] + epsilon) +
                    beta[at(i)]);
  const double of_sample = static_cast<double>(count) / static_cast<double>(std::max<size_t>(count - 1, 1));
  for (size_t c = 0; c < channels; ++c) {
    const double was = old_mean.empty() ? 0 : old_mean[c],
                 spread = old_variance.empty() ? 0 : old_variance[c];
    out.mean.push_back((1 - factor) * was + factor * mean[c]);
    out.variance.push_back((1 - factor) * spread + factor * of_sample * variance[c]);
  }
  return out;
}

TEST(Translate, KeepsRunningMomentsOfBatches) {
  std::vector<float> values;
  for (int i = 0; i < 48; ++i) values.push_back(static_cast<float>(i * 37 % 48) / 7 - 2);
  const std::vector<Tensor> operands = {F({2}, {1.5, -2}), F({2}, {0.25, 5}), F({2}, {0.5, -3}),
                                        F({2}, {4, 0.75})};
  struct Form {
    const char* format;
    std::vector<int64_t> dims;
    int channel;
  };
  for (const Form& form :
       {Form{"NHWC", {2, 3, 4, 2}, 3}, Form{"NCHW", {4, 2, 3, 2}, 1}, Form{"NHWC", {1, 1, 1, 2}, 3},
        Form{"NDHWC", {2, 1, 3, 2, 2}, 4}, Form{"NCDHW", {2, 2, 1, 3, 2}, 1}}) {
    size_t count = 1;
    for (const int64_t d : form.dims) count *= static_cast<size_t>(d);
    const Tensor x =
        F(form.dims, std::vector<float>(values.begin(), values.begin() + static_cast<int>(count)));
    for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
      for (const double factor : {1.0, 0.25, 0.0}) {
        SCOPED_TRACE(std::string(form.format) + " " + std::to_string(count) + " by " +
                     std::to_string(factor));
        const Trained want = TrainedOn(x, form.channel, operands, factor, 0.125);
        const Attrs attrs = A("is_training", true, "epsilon", 0.125, "data_format", form.format,
                              "exponential_avg_factor", factor);
        std::vector<Tensor> all = {x};
        all.insert(all.end(), operands.begin(), operands.end());
        Check({op, all, want.y, attrs, 5});
        Check({op, all, want.mean, attrs, 5, 1, 1});
        Check({op, all, want.variance, attrs, 5, 5, 2});  // its statistics are computed too
      }
    }
  }
}

// Of the second result on too.
TEST(Translate, CountsDistinctValues) {
  const Tensor list = L({5}, {7, 3, 7, 7, 3});
  for (const auto& [result, expected] :
       {std::pair<size_t, std::vector<double>>{1, {0, 1, 0, 0, 1}}, {2, {3, 2}}})
    Check({"UniqueWithCounts", {list}, expected, A("out_idx", DType::kI64), 3, 1, result});
  Check({"TopK", {F({2, 3}, {1, 3, 2, 6, 4, 5})}, {1, 2, 0, 2}, A("k", 2), 2, 1, 1});
  const Tensor x = F({2, 1, 2, 1}, {1, 3, 5, 7}), one = F({1}, {1}), none = F({0}, {});
  Check({"FusedBatchNormV3", {x, one, one, none, none}, {4}, A("is_training", true), 6, 1, 1});
  Check({"FusedBatchNormV3", {x, one, one, none, none}, {20.0 / 3}, A("is_training", true), 6, 1, 2});
}

// What is drawn is not TensorFlow's: what is written is looked at.
TEST(Translate, DrawsRandomNumbersByTheBuiltins) {
  for (const auto& [source, op] :
       {std::pair<SourceOp, Op>{{"RandomUniform", {I({2}, {2, 3})}, {}, A("dtype", DType::kF32), 1, 0},
                                Op::kRandomUniform},
        {{"RandomStandardNormal", {L({2}, {2, 3})}, {}, A("dtype", DType::kF32), 1, 0},
         Op::kRandomStandardNormal},
        {{"RandomUniformInt", {I({2}, {2, 3}), I({}, {4}), I({}, {9})}, {}, A("Tout", DType::kI32), 1, 0},
         Op::kRandomUniform},
        {{"Multinomial", {F({2, 4}, std::vector<float>(8)), I({}, {3})}, {}, {}, 1, 1}, Op::kMultinomial}}) {
    Bench bench;
    std::vector<Tensor> inputs;
    Function& f = Translated(bench, source, inputs);
    EXPECT_EQ(Count(f, Op::kOpaque), 0u) << ToText(f);
    EXPECT_EQ(Count(f, op), 1u);
    EXPECT_EQ(f.value(f.outputs[0]).type.shape, (Shape{2, 3})) << ToText(f);
  }
}

TEST(Untranslatable, OpsSayWhatCanBeDone) {
  EXPECT_THAT(WhyUntranslatable("XlaCallModule"), ::testing::HasSubstr("StableHLO"));
  EXPECT_THAT(WhyUntranslatable("Merge"), ::testing::HasSubstr("control flow of TensorFlow 1"));
  EXPECT_THAT(WhyUntranslatable("TensorArrayV3"), ::testing::HasSubstr("TensorArray of TensorFlow 1"));
  EXPECT_THAT(WhyUntranslatable("ParseExampleV2"), ::testing::HasSubstr("signature with tensor inputs"));
  EXPECT_THAT(WhyUntranslatable("RaggedTensorToTensor"), ::testing::HasSubstr("padded"));
  EXPECT_THAT(WhyUntranslatable("DecodeJpeg"), ::testing::HasSubstr("decoded inputs"));
  EXPECT_THAT(WhyUntranslatable("StringToHashBucketFast"), ::testing::HasSubstr("string op"));
  EXPECT_THAT(WhyUntranslatable("LookupTableInsertV2"), ::testing::HasSubstr("filled once"));
  EXPECT_THAT(WhyUntranslatable("StatelessRandomUniformV2"), ::testing::HasSubstr("generate them outside"));
  EXPECT_EQ(WhyUntranslatable("Betainc"), "there is no translation of this op");
  // None of them has a translation that this would hide.
  for (const char* op :
       {"XlaCallModule", "Merge", "TensorArrayV3", "ParseExampleV2", "RaggedTensorToTensor", "StringSplitV2"})
    EXPECT_EQ(FindTranslation(op), nullptr) << op;
}

}  // namespace
}  // namespace fusebox::converter
