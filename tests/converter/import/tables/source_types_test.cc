// SPDX-License-Identifier: Apache-2.0
// Element types that an op says for itself, or leaves to a default.
#include <gmock/gmock.h>

#include "host/graph/half.h"
#include "host/graph/values.h"
#include "tests/converter/import/tables/translate_cases.h"
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
Tensor Of(DType dtype, std::vector<int64_t> dims, const std::vector<T>& values) {
  return {{dtype, Shape(std::move(dims))}, Buffer::Of<T>(values)};
}

// One source op over inputs, all of whose results are outputs.
struct Translated {
  Bench bench;
  Function& f = bench.Add("main");
  std::vector<Tensor> inputs;
  std::string error;

  Translated(const std::string& op, std::vector<Tensor> operands, Attrs attrs, size_t results = 1,
             size_t computed = 99)
      : inputs(std::move(operands)) {
    std::vector<ValueId> values;
    for (size_t i = 0; i < inputs.size(); ++i)
      values.push_back(i < computed ? f.AddInput(inputs[i].type) : f.AddConst(inputs[i]));
    if (computed < inputs.size()) inputs.resize(computed);
    Node& node = f.AddNode(Op::kOpaque, values, std::vector<Type>(results), std::move(attrs));
    node.name = op;
    node.location.name = "n/" + op;
    f.outputs = node.results;
    bench.Sign(f);
    error = bench.Run(FoldToFixpoint);
    if (error.empty()) error = bench.Run(RequireLegal);
  }
  std::vector<Tensor> Results() { return bench.Compute("main", inputs); }
};

TEST(SourceTypes, AnAlphaLeftOutIsThatOfTheFile) {
  Translated leaky("LeakyRelu", {F({2}, {-1, 2})}, {});
  ASSERT_EQ(leaky.error, "");
  ASSERT_EQ(leaky.bench.Run(Finish), "");
  EXPECT_EQ(leaky.f.nodes[0]->attrs.f64("alpha", 0), double{0.2F});
}

TEST(SourceTypes, RealOptionsAreRoundedAsTheFileRoundsThem) {
  Translated leaky("LeakyRelu", {F({2}, {-1, 2})}, A("alpha", 0.1));
  ASSERT_EQ(leaky.bench.Run(Finish), "");
  EXPECT_EQ(leaky.f.nodes[0]->attrs.f64("alpha", 0), double{0.1F});
}

TEST(SourceTypes, OfIndicesOfTheLargestAreAsTheOpSays) {
  const Tensor x = F({3}, {1, 3, 2}), k = I({}, {2});
  for (const DType dtype : {DType::kI64, DType::kI32, DType::kI16}) {
    Translated top("TopKV2", {x, k}, A("index_type", dtype), 2, 1);
    ASSERT_EQ(top.error, "");
    const auto out = top.Results();
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[1].type.dtype, dtype);
    EXPECT_THAT(ToDoubles(out[1]), ElementsAre(1, 2));
  }
}

TEST(SourceTypes, AnImageOfWholeNumbersIsResizedToReals) {
  Translated bytes("ResizeBilinear", {Of<uint8_t>(DType::kU8, {1, 1, 2, 1}, {0, 255}), I({2}, {1, 4})},
                   A("half_pixel_centers", true), 1, 1);
  ASSERT_EQ(bytes.error, "");
  const auto out = bytes.Results();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].type.dtype, DType::kF32);
  EXPECT_THAT(ToDoubles(out[0]), ElementsAre(0, 63.75, 191.25, 255));
  Translated nearest("ResizeNearestNeighbor",
                     {Of<uint8_t>(DType::kU8, {1, 1, 2, 1}, {0, 255}), I({2}, {1, 4})}, {}, 1, 1);
  ASSERT_EQ(nearest.error, "");
  EXPECT_EQ(nearest.Results()[0].type.dtype, DType::kU8);
}

TEST(SourceTypes, IndicesOfAScatterAreWrittenIn32Bits) {
  Translated scatter("ScatterNd", {L({2, 1}, {2, 0}), F({2}, {5, 7}), L({1}, {4})}, {}, 1, 2);
  ASSERT_EQ(scatter.error, "");
  for (const auto& node : scatter.f.nodes) {
    if (!node->is(Op::kScatterNd)) continue;
    EXPECT_EQ(scatter.f.value(node->operands[0]).type.dtype, DType::kI32);
    EXPECT_EQ(scatter.f.value(node->operands[2]).type.dtype, DType::kI32);
  }
  EXPECT_THAT(ToDoubles(scatter.Results()[0]), ElementsAre(7, 0, 5, 0));
}

TEST(SourceTypes, ACastGoesByWhatItSays) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId x = f.AddInput({DType::kF32, Shape()});
  // Whoever declared the operand took it for a real, and it is not translated yet.
  const ValueId size = Opaque(f, "Size", {x}, {DType::kF32, Shape()});
  f.outputs = {
      Opaque(f, "Cast", {size}, {DType::kF32, Shape()}, A("SrcT", DType::kI32, "DstT", DType::kF32))};
  bench.Sign(f);
  ASSERT_EQ(bench.Run(TranslateOps), "");
  f.value(x).type.shape = {2, 3};
  ASSERT_EQ(bench.Run(FoldToFixpoint), "");
  const auto out = bench.Compute("main", {F({2, 3}, {0, 0, 0, 0, 0, 0})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].type.dtype, DType::kF32);
  EXPECT_THAT(ToDoubles(out[0]), ElementsAre(6));
}

TEST(SourceTypes, IndicesOfAnyWholeTypeAreTaken) {
  Translated hot("OneHot", {Of<uint8_t>(DType::kU8, {2}, {1, 0}), I({}, {2}), F({}, {5}), F({}, {-1})}, {}, 1,
                 1);
  ASSERT_EQ(hot.error, "");
  EXPECT_THAT(ToDoubles(hot.Results()[0]), ElementsAre(-1, 5, 5, -1));
}

TEST(Widened, ArithmeticOnBytesIsPlain) {
  const Tensor x = Of<uint8_t>(DType::kU8, {3}, {250, 7, 0}), y = Of<uint8_t>(DType::kU8, {3}, {10, 2, 1});
  const auto run = [&](const char* op) {
    Translated made(op, {x, y}, {});
    EXPECT_EQ(made.error, "") << op;
    const auto out = made.Results();
    EXPECT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].type.dtype, DType::kU8) << op;
    return ToDoubles(out[0]);
  };
  EXPECT_THAT(run("AddV2"), ElementsAre(4, 9, 1));  // modulo 256
  EXPECT_THAT(run("Sub"), ElementsAre(240, 5, 255));
  EXPECT_THAT(run("Mul"), ElementsAre(196, 14, 0));
  EXPECT_THAT(run("FloorDiv"), ElementsAre(25, 3, 0));
  EXPECT_THAT(run("Maximum"), ElementsAre(250, 7, 1));
  Translated less("Less", {y, x}, {});
  ASSERT_EQ(less.error, "");
  EXPECT_EQ(less.Results()[0].type.dtype, DType::kBool);
  EXPECT_THAT(ToDoubles(less.Results()[0]), ElementsAre(1, 1, 0));
  Translated sum("Sum", {Of<int8_t>(DType::kI8, {2}, {100, 100}), I({1}, {0})}, {}, 1, 1);
  ASSERT_EQ(sum.error, "");
  EXPECT_THAT(ToDoubles(sum.Results()[0]), ElementsAre(-56));
}

TEST(Widened, OfWholeNumbersHasNoOpOfReals) {
  const Tensor x = I({3}, {-3, 0, 9});
  const auto run = [&](const char* op) {
    Translated made(op, {x}, {});
    EXPECT_EQ(made.error, "") << op;
    return ToDoubles(made.Results()[0]);
  };
  EXPECT_THAT(run("Square"), ElementsAre(9, 0, 81));
  EXPECT_THAT(run("Round"), ElementsAre(-3, 0, 9));
  EXPECT_THAT(run("Relu"), ElementsAre(0, 0, 9));
  EXPECT_THAT(run("Relu6"), ElementsAre(0, 0, 6));
}

TEST(Widened, HalvesAreComputedAsSingles) {
  const auto halves = [](std::vector<int64_t> dims, const std::vector<float>& values) {
    std::vector<Half> stored;
    for (const float value : values) stored.push_back(static_cast<Half>(value));
    return Of<Half>(DType::kF16, std::move(dims), stored);
  };
  Translated relu("Relu", {halves({2}, {-1, 2})}, {});
  ASSERT_EQ(relu.error, "");
  EXPECT_THAT(relu.Results()[0].data.As<Half>(), ElementsAre(static_cast<Half>(0), static_cast<Half>(2)));
  Translated product("MatMul", {halves({1, 2}, {1, 2}), halves({2, 1}, {3, 4})}, {});
  ASSERT_EQ(product.error, "");
  EXPECT_EQ(product.Results()[0].type.dtype, DType::kF16);
  EXPECT_THAT(product.Results()[0].data.As<Half>(), ElementsAre(static_cast<Half>(11)));
}

TEST(MatrixDiag, RefusesAPaddingOfAnythingButZero) {
  const auto error = [](float padding) {
    return Translated("MatrixDiagV3",
                      {F({2}, {1, 2}), I({}, {0}), I({}, {-1}), I({}, {-1}), F({}, {padding})}, {}, 1, 1)
        .error;
  };
  EXPECT_EQ(error(0), "");
  EXPECT_THAT(error(7), HasSubstr("a padding_value other than 0"));
}

TEST(Legal, WantsABoolForACondition) {
  Bench bench;
  Function& f = bench.Add("main");
  Function& same = bench.Add("same");
  same.outputs = {same.AddInput(F32({2}))};
  const ValueId c = f.AddInput(I32({})), x = f.AddInput(F32({2}));
  f.outputs = f.AddNode(Op::kIf, {c, x}, {F32({2})},
                        Ref("then_subgraph_index", "same", "else_subgraph_index", "same"))
                  .results;
  bench.Sign(f);
  EXPECT_THAT(bench.Run(RequireLegal), HasSubstr("its condition is i32, expected bool"));
}

// gamma 2 and 1, beta 1 and 0, mean 1 and 1, variance 3 and 15, epsilon 1: (x - 1) + 1 and (x - 1) / 4.
std::vector<Tensor> Normalized(Tensor x) {
  return {std::move(x), F({2}, {2, 1}), F({2}, {1, 0}), F({2}, {1, 1}), F({2}, {3, 15})};
}

TEST(BatchNorm, IsOfVolumesToo) {
  for (const auto& [format, dims] :
       {std::pair<const char*, std::vector<int64_t>>{"NDHWC", {1, 2, 1, 1, 2}}, {"NCDHW", {1, 2, 2, 1, 1}}}) {
    const bool last = std::string(format) == "NDHWC";
    const std::vector<float> x = last ? std::vector<float>{3, 5, 7, 9} : std::vector<float>{3, 7, 5, 9};
    Translated norm("FusedBatchNormV3", Normalized(F(dims, x)),
                    A("epsilon", 1.0, "is_training", false, "data_format", format), 1, 1);
    ASSERT_EQ(norm.error, "") << format;
    const std::vector<double> y = last ? std::vector<double>{3, 1, 7, 2} : std::vector<double>{3, 7, 1, 2};
    EXPECT_EQ(ToDoubles(norm.Results()[0]), y) << format;
  }
  Translated other("FusedBatchNormV3", Normalized(F({1, 1, 1, 2}, {3, 5})),
                   A("is_training", false, "data_format", "NHCW"), 1, 1);
  EXPECT_THAT(other.error, HasSubstr("data_format NHCW"));
}

TEST(BatchNorm, OfHalvesIsComputedInItsParameters) {
  const std::vector<Half> x = {static_cast<Half>(3), static_cast<Half>(5)};
  Translated norm("FusedBatchNormV3", Normalized(Of<Half>(DType::kF16, {1, 1, 1, 2}, x)),
                  A("epsilon", 1.0, "is_training", false), 1, 1);
  ASSERT_EQ(norm.error, "");
  const auto out = norm.Results();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].type.dtype, DType::kF16);
  EXPECT_THAT(out[0].data.As<Half>(), ElementsAre(static_cast<Half>(3), static_cast<Half>(1)));
}

TEST(BatchNorm, GivesItsMeanAndVarianceOn) {
  Translated norm("FusedBatchNormV3", Normalized(F({1, 1, 1, 2}, {3, 5})),
                  A("epsilon", 1.0, "is_training", false), 3);
  ASSERT_EQ(norm.error, "");
  const auto out = norm.Results();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(ToDoubles(out[1]), ElementsAre(1, 1));
  EXPECT_THAT(ToDoubles(out[2]), ElementsAre(3, 15));
}

TEST(Legal, SaysWhatNoKernelComputes) {
  Translated ints("BatchMatMulV2", {I({1, 1, 2}, {1, 2}), I({1, 2, 1}, {1, 2})}, {});
  EXPECT_THAT(ints.error, HasSubstr("a product of i32"));
  Translated einsum("Einsum", {I({1, 2}, {1, 2}), I({2, 1}, {1, 2})}, A("equation", "ij,jk->ik"));
  EXPECT_THAT(einsum.error, HasSubstr("a product of i32"));
  const Tensor whole = I({2}, {7, 5});
  Translated angle("Atan2", {whole, whole}, {});
  EXPECT_THAT(angle.error, HasSubstr("no kernel computes ATAN2 of i32, i32"));
}

TEST(Finish, AsksForTheRankThatNobodyKnows) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId x = f.AddInput({DType::kF32, Shape()});
  f.outputs = {f.AddNode(Op::kRelu, {x}, {{DType::kF32, Shape()}}).results[0]};
  bench.Sign(f);
  EXPECT_THAT(
      bench.Run(Finish),
      HasSubstr(
          "signature main: input i0 has an unknown rank, like all tensors of the model; set --shape i0=..."));
}

}  // namespace
}  // namespace fusebox::converter
