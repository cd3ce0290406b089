// SPDX-License-Identifier: Apache-2.0
// Functions called on layers' results, in TensorFlow's words and in those of Keras 3, against their
// definition.
#include <gmock/gmock.h>

#include <numbers>

#include "tests/converter/import/keras/keras_functions.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

struct Function {
  const char *tensorflow, *keras;  // null: there is none
  json keywords, config;
  std::vector<float> want;
};

void ExpectAll(const std::vector<Function>& functions) {
  for (const Function& f : functions) {
    SCOPED_TRACE(f.tensorflow ? f.tensorflow : f.keras);
    if (f.tensorflow) ExpectNear(Of2(f.tensorflow, f.keywords), f.want);
    if (f.keras) ExpectNear(Of3(f.keras, f.config), f.want);
  }
}

TEST(KerasFunctions, TakeFlagsThatAreNumbersAndNoOthers) {
  ExpectNear(Of2("math.cumsum", {{"axis", 1}, {"exclusive", 1}}), {0, 0, -1, 2});
  ExpectNear(Of2("math.cumsum", {{"axis", 1}, {"exclusive", 0}}), {-1, 2, -0.5F, 6});
  const auto said = Of2("nn.gelu", {{"approximate", true}}), number = Of2("nn.gelu", {{"approximate", 1}});
  ASSERT_TRUE(said && number);
  EXPECT_EQ((*number)[0], (*said)[0]);
  const auto refused = [](const json& keywords, const char* why) {
    const auto result = Of2("math.cumsum", keywords);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr(why));
  };
  refused({{"axis", 1}, {"exclusive", "yes"}}, "its exclusive \"yes\"");
  refused({{"axis", {1, 2}}}, "its axis is not one number");
}

TEST(KerasFunctions, OfElements) {
  ExpectAll({{"math.floor", "Floor", kNone, kNone, {-1, 2, 0, 4}},
             {"math.sign", "Sign", kNone, kNone, {-1, 1, 1, 1}},
             {"math.expm1",
              "Expm1",
              kNone,
              kNone,
              {std::expm1(-1.0F), std::expm1(2.0F), std::expm1(0.5F), std::expm1(4.0F)}},
             {"zeros_like", "ZerosLike", kNone, kNone, {0, 0, 0, 0}},
             {"identity", "Copy", kNone, kNone, {-1, 2, 0.5F, 4}},
             {"math.reciprocal", "Reciprocal", kNone, kNone, {-1, 0.5F, 2, 0.25F}},
             {"nn.silu",
              nullptr,
              {{"beta", 2.0}},
              kNone,
              {-static_cast<float>(Sigmoid(-2)), 2 * static_cast<float>(Sigmoid(4)),
               0.5F * static_cast<float>(Sigmoid(1)), 4 * static_cast<float>(Sigmoid(8))}},
             {"convert_to_tensor", nullptr, {{"dtype", "float32"}}, kNone, {-1, 2, 0.5F, 4}}});
}

TEST(KerasFunctions, OfElementsThatAreInverseOrPeriodic) {
  const Tensor small = Floats({1, 2}, {-0.5F, 0.25F}), large = Floats({1, 2}, {1, 3});
  struct Inverse {
    const char *tensorflow, *keras;
    double (*want)(double);
    const Tensor& x;
  };
  for (const auto& [tensorflow, keras, want, x] :
       {Inverse{"math.asin", "Arcsin", std::asin, small},
        {"math.acos", "Arccos", std::acos, small},
        {"math.asinh", "Arcsinh", std::asinh, small},
        {"math.acosh", "Arccosh", std::acosh, large},
        {"math.atanh", "Arctanh", std::atanh, small},
        {"math.erfc", nullptr, std::erfc, small},
        {nullptr, "Log2", std::log2, large},
        {nullptr, "Log10", std::log10, large},
        {nullptr, "Exp2", std::exp2, small},
        {nullptr, "Deg2rad", [](double v) { return v * std::numbers::pi / 180; }, large}}) {
    SCOPED_TRACE(tensorflow ? tensorflow : keras);
    const auto values = Values(x);
    const std::vector<float> wanted = {static_cast<float>(want(values[0])),
                                       static_cast<float>(want(values[1]))};
    if (tensorflow) ExpectNear(Of2(tensorflow, kNone, x), wanted);
    if (keras) ExpectNear(Of3(keras, kNone, {}, x), wanted);
  }
  ExpectAll(
      {{"math.rint", nullptr, kNone, kNone, {-1, 2, 0, 4}}, {nullptr, "Trunc", kNone, kNone, {-1, 2, 0, 4}}});
  ExpectNear(Of3("FullLike", kNone, {Graph3::Tensor("x"), 3.0}), {3, 3, 3, 3});
  ExpectNear(Of3("Trunc", kNone, {}, Floats({1, 2}, {-1.75F, 1.75F})), {-1, 1});
}

TEST(KerasFunctions, OfWholeNumbersBitByBit) {
  const auto of = [](const char* function, json args) {
    const std::string file = TestDir() + "/bits.keras";
    WriteKeras(file, Graph3().Input("x", {1, 2}, "int32").Operation(function, kNone, "y", args).Config(), {});
    const auto got =
        RunFile(file, {{{DType::kI32, {1, 2}}, Buffer::Of<int32_t>(std::vector<int32_t>{6, -1})}});
    EXPECT_TRUE(got) << got.error().message;
    const auto values = got ? got->at(0).data.As<int32_t>() : std::span<const int32_t>();
    return std::vector<int32_t>(values.begin(), values.end());
  };
  const json x = Graph3::Tensor("x");
  EXPECT_EQ(of("BitwiseAnd", {x, 3}), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(of("BitwiseOr", {x, 1}), (std::vector<int32_t>{7, -1}));
  EXPECT_EQ(of("BitwiseXor", {x, 3}), (std::vector<int32_t>{5, -4}));
  EXPECT_EQ(of("BitwiseNot", {x}), (std::vector<int32_t>{-7, 0}));
}

// TensorFlow approximates where it is told to, Keras 3 where it is not told otherwise.
TEST(KerasFunctions, GeluIsApproximateOrNot) {
  const std::vector<float> exact = {-0.158655F, 1.954500F, 0.345731F, 3.999873F},
                           near = {-0.158808F, 1.954598F, 0.345714F, 3.999930F};
  ExpectAll({{"nn.gelu", "Gelu", kNone, {{"approximate", false}}, exact},
             {"nn.gelu", "Gelu", {{"approximate", true}}, kNone, near}});
}

converter::Report Converted(Graph2& graph) {
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, {graph.Config(), {}});
  converter::Options options;
  options.registry = Rnn();
  const auto written = Convert(file, options, "out");
  EXPECT_TRUE(written) << written.error().message;
  return written ? written->report : converter::Report();
}

// Of a product too, whose factors a pattern cannot tell from those of the function.
TEST(KerasFunctions, GeluAndHardSwishAreOneOp) {
  for (const auto& [activation, op] : {std::pair("gelu", "GELU"), std::pair("hard_silu", "HARD_SWISH")}) {
    Graph2 graph;
    graph.Input("x", {nullptr, 4}).Layer("Multiply", json::object(), "m", {"x", "x"});
    graph.Layer("Activation", {{"activation", activation}}, "y", {"m"});
    EXPECT_THAT(Converted(graph).ops_after, UnorderedElementsAre(Pair("MUL", 1), Pair(op, 1)));
  }
}

TEST(KerasFunctions, ErfIsReportedAsTheOpsThatItBecomes) {
  Graph2 graph;
  graph.Input("x", {nullptr, 4}).Layer("TFOpLambda", {{"function", "math.erf"}}, "y", {"x"});
  const converter::Report report = Converted(graph);
  EXPECT_TRUE(report.sites.empty());
  EXPECT_THAT(report.ops_before, Contains(Pair("RELU_N1_TO_1", 2))) << "activations of its products later";
  EXPECT_THAT(report.ops_after, Contains(Pair("DIV", 1)));
}

TEST(KerasFunctions, OfTwoOperands) {
  const json row = json::array({2.0, 4.0});
  ExpectAll({{"math.squared_difference", nullptr, {{"y", 1.0}}, kNone, {4, 1, 0.25F, 9}},
             {"math.floordiv", nullptr, {{"y", 2.0}}, kNone, {-1, 1, 0, 2}},
             {"math.multiply", nullptr, {{"y", row}}, kNone, {-2, 8, 1, 16}},
             {"__operators__.radd", nullptr, {{"x", 1.0}}, kNone, {0, 3, 1.5F, 5}}});
  const json x = Graph3::Tensor("x");
  ExpectNear(Of3("Logaddexp", kNone, {x, 100.0}), {100, 100, 100, 100});
  ExpectNear(Of3("Hypot", kNone, {x, 3.0}), {std::sqrt(10.0F), std::sqrt(13.0F), std::sqrt(9.25F), 5});
  ExpectNear(Of2("math.multiply_no_nan", {{"y", 0.0}}), {0, 0, 0, 0});
  ExpectNear(Of2("math.xlogy", {{"y", 2.0}}),
             {-std::log(2.0F), 2 * std::log(2.0F), std::log(2.0F) / 2, 4 * std::log(2.0F)});
  ExpectNear(Of3("Mod", kNone, {x, 1.5}), {0.5F, 0.5F, 0.5F, 1});
  ExpectNear(Of3("Add", kNone, {x, row}), {1, 6, 2.5F, 8});
  const json array = {{"class_name", "__numpy__"}, {"config", {{"value", row}, {"dtype", "float32"}}}};
  ExpectNear(Of3("Add", kNone, {x, array}), {1, 6, 2.5F, 8});
  const auto ragged = Of3("Add", kNone, {x, json::array({json::array({1, 2}), json::array({1})})});
  ASSERT_FALSE(ragged);
  EXPECT_THAT(ragged.error().message, HasSubstr("neither a tensor nor a number"));
}

TEST(KerasFunctions, OfWholeAxes) {
  const json last = {{"axis", -1}};
  ExpectAll({{"math.reduce_prod", "Prod", last, last, {-2, 2}},
             {"math.reduce_variance", "Var", last, last, {2.25F, 3.0625F}},
             {"math.reduce_std", "Std", last, last, {1.5F, 1.75F}},
             {"math.reduce_logsumexp",
              "Logsumexp",
              last,
              last,
              {std::log(std::exp(-1.0F) + std::exp(2.0F)), std::log(std::exp(0.5F) + std::exp(4.0F))}},
             {"norm", "Norm", last, last, {std::sqrt(5.0F), std::sqrt(16.25F)}},
             {"math.l2_normalize",
              "Normalize",
              last,
              last,
              {-1 / std::sqrt(5.0F), 2 / std::sqrt(5.0F), 0.5F / std::sqrt(16.25F), 4 / std::sqrt(16.25F)}},
             {"math.cumsum", "Cumsum", {{"axis", 1}}, {{"axis", 1}}, {-1, 2, -0.5F, 6}},
             {"nn.log_softmax",
              "LogSoftmax",
              last,
              last,
              {-std::log1p(std::exp(3.0F)), -std::log1p(std::exp(-3.0F)), -std::log1p(std::exp(3.5F)),
               -std::log1p(std::exp(-3.5F))}}});
  const Tensor flags = {{DType::kBool, {1, 3}}, Buffer::Of<uint8_t>(std::vector<uint8_t>{1, 0, 1})};
  const json config = Graph3()
                          .Input("x", {1, 3}, "bool")
                          .Operation("Sum", {{"axis", {-1}}, {"keepdims", false}}, "y", {Graph3::Tensor("x")})
                          .Config();
  WriteKeras(TestDir() + "/flags.keras", config, {});
  const auto count = RunFile(TestDir() + "/flags.keras", {flags});
  ASSERT_TRUE(count) << count.error().message;
  EXPECT_EQ(count->at(0).data.As<int32_t>()[0], 2);
  const auto at = Of3("Argmax", {{"axis", -1}});
  ASSERT_TRUE(at) << at.error().message;
  EXPECT_EQ(ToString(at->at(0).type), "i32[1,2]");
  const auto of_all = Of3("Argmax", {{"axis", nullptr}});
  ASSERT_TRUE(of_all) << of_all.error().message;
  EXPECT_EQ(of_all->at(0).data.As<int32_t>()[0], 3);
  const auto wide = Of2("math.argmax", last);
  ASSERT_TRUE(wide) << wide.error().message;
  EXPECT_EQ(ToString(wide->at(0).type), "i64[1,2]");
}

TEST(KerasFunctions, ThatCountSortAndScale) {
  const json last = {{"axis", -1}};
  ExpectAll(
      {{"math.cumprod", "Cumprod", {{"axis", 1}}, {{"axis", 1}}, {-1, 2, -0.5F, 8}},
       {"math.reduce_euclidean_norm", nullptr, last, kNone, {std::sqrt(5.0F), std::sqrt(16.25F)}},
       {"sort", "Sort", kNone, last, {-1, 2, 0.5F, 4}},
       {"sort", nullptr, {{"direction", "DESCENDING"}}, kNone, {2, -1, 4, 0.5F}},
       {"sort", "Sort", {{"axis", 1}}, {{"axis", 1}}, {-1, 2, 0.5F, 4}},
       {"linalg.band_part", "Tril", {{"num_lower", -1}, {"num_upper", 0}}, {{"k", 0}}, {-1, 0, 0.5F, 4}},
       {nullptr, "Triu", kNone, {{"k", 0}}, {-1, 2, 0, 4}},
       {"nn.crelu", nullptr, kNone, kNone, {0, 2, 1, 0, 0.5F, 4, 0, 0}},
       {"nn.moments", "Moments", {{"axes", {2}}}, {{"axes", {2}}}, {0.5F, 2.25F}}});
  const auto count = Of3("CountNonzero", last, {}, Floats({1, 2, 2}, {0, 1, NAN, -3}));
  ASSERT_TRUE(count) << count.error().message;
  EXPECT_EQ(ToString(count->at(0).type), "i32[1,2]");
  EXPECT_THAT(count->at(0).data.As<int32_t>(), ::testing::ElementsAre(1, 2));
  const auto wide = Of2("math.count_nonzero", last);
  ASSERT_TRUE(wide) << wide.error().message;
  EXPECT_EQ(ToString(wide->at(0).type), "i64[1,2]");
  const auto places = Of3("Argsort", last, {}, Floats({1, 3}, {5, -1, 2}));
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_THAT(places->at(0).data.As<int32_t>(), ::testing::ElementsAre(1, 2, 0));
  const Tensor three = Floats({1, 1, 1, 3}, {1, 2, 3});
  ExpectNear(Of2("nn.local_response_normalization",
                 {{"depth_radius", 1}, {"bias", 1.0}, {"alpha", 1.0}, {"beta", 1.0}}, three),
             {1.0F / 6, 2.0F / 15, 3.0F / 14});
  const auto neither = Of2("sort", {{"direction", "UP"}});
  ASSERT_FALSE(neither);
  EXPECT_THAT(neither.error().message, HasSubstr("its direction UP"));
  const auto beyond = Of3("Tril", {{"k", -1}});
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message, HasSubstr("its k -1"));
}

TEST(KerasFunctions, ThatCutAndPick) {
  ExpectNear(Of2("slice", {{"begin", {0, 1, 0}}, {"size", {1, -1, 1}}}), {0.5F});
  ExpectNear(Of3("Slice", kNone, {Graph3::Tensor("x"), {0, 0, 1}, {1, 2, 1}}), {2, 4});
  ExpectNear(Of2("gather_nd", {{"indices", {{0, 1}, {0, 0}}}}), {0.5F, 4, -1, 2});
  const json at = {{{1, 0}, {0, 0}}};
  ExpectNear(Of3("TakeAlongAxis", {{"axis", -1}}, {Graph3::Tensor("x"), at}), {2, -1, 0.5F, 0.5F});
}

TEST(KerasFunctions, ThatMoveElements) {
  const json swap = {{"axis1", 1}, {"axis2", -1}}, move = {{"source", 2}, {"destination", 1}};
  ExpectAll({{nullptr, "Swapaxes", kNone, swap, {-1, 0.5F, 2, 4}},
             {nullptr, "Moveaxis", kNone, move, {-1, 0.5F, 2, 4}},
             {"reverse", "Flip", {{"axis", {1}}}, {{"axis", 1}}, {0.5F, 4, -1, 2}},
             {"roll", "Roll", {{"shift", 1}, {"axis", 2}}, {{"shift", 1}, {"axis", 2}}, {2, -1, 4, 0.5F}},
             {"tile",
              "Tile",
              {{"multiples", {1, 1, 2}}},
              {{"repeats", {1, 1, 2}}},
              {-1, 2, -1, 2, 0.5F, 4, 0.5F, 4}},
             {"repeat",
              "Repeat",
              {{"repeats", 2}, {"axis", 2}},
              {{"repeats", 2}, {"axis", -1}},
              {-1, -1, 2, 2, 0.5F, 0.5F, 4, 4}},
             {"gather", nullptr, {{"indices", {1}}, {"axis", 1}}, kNone, {0.5F, 4}}});
  for (const int index : {1, -1})
    ExpectNear(Of3("Take", {{"axis", 1}}, {Graph3::Tensor("x"), json::array({index})}), {0.5F, 4});
  const json amounts = {{0, 0}, {0, 0}, {1, 0}};
  ExpectAll({{"pad", "Pad", {{"paddings", amounts}}, {{"pad_width", amounts}}, {0, -1, 2, 0, 0.5F, 4}},
             {"pad",
              "Pad",
              {{"paddings", amounts}, {"constant_values", 7}},
              {{"pad_width", amounts}, {"mode", "constant"}, {"constant_values", 7}},
              {7, -1, 2, 7, 0.5F, 4}},
             {"pad",
              "Pad",
              {{"paddings", amounts}, {"mode", "REFLECT"}},
              {{"pad_width", amounts}, {"mode", "reflect"}},
              {2, -1, 2, 4, 0.5F, 4}}});
}

TEST(KerasFunctions, ThatJoinAndCut) {
  json twice = json::array({Graph3::Tensor("x"), Graph3::Tensor("x")});
  const auto stacked = Of3("Stack", {{"axis", -1}}, {twice});
  ExpectNear(stacked, {-1, -1, 2, 2, 0.5F, 0.5F, 4, 4});
  ASSERT_TRUE(stacked);
  EXPECT_EQ(ToString(stacked->at(0).type), "f32[1,2,2,2]");
  // Result 0 of each; sizes in TensorFlow, places in Keras 3.
  const Tensor five = Floats({1, 5}, {1, 2, 3, 4, 5});
  ExpectNear(Of2("split", {{"num_or_size_splits", {2, -1}}, {"axis", 1}}, five), {1, 2});
  ExpectNear(Of2("split", {{"num_or_size_splits", 5}, {"axis", 1}}, five), {1});
  ExpectNear(Of3("Split", {{"indices_or_sections", {3}}, {"axis", 1}}, {}, five), {1, 2, 3});
  ExpectNear(Of3("Unstack", {{"num", nullptr}, {"axis", 1}}), {-1, 2});
  const auto odd = Of3("Split", {{"indices_or_sections", 2}, {"axis", 1}}, {}, five);
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().message, HasSubstr("no 2 equal parts"));
}

TEST(KerasFunctions, OfPictures) {
  const Tensor x = Floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  ExpectNear(Of2("nn.depth_to_space", {{"block_size", 2}}, x), {1, 2, 5, 6, 3, 4, 7, 8});
  const Tensor line = Floats({1, 1, 2, 1}, {0, 4});
  for (const auto& [method, want] :
       {std::pair<const char*, std::vector<float>>{"nearest", {0, 0, 4, 4}}, {"bilinear", {0, 1, 3, 4}}}) {
    ExpectNear(Of2("image.resize", {{"size", {1, 4}}, {"method", method}}, line), want);
    ExpectNear(Of3("Resize", {{"size", {1, 4}}, {"interpolation", method}}, {}, line), want);
  }
}

// Of tf.shape, sliced and put together again.
TEST(KerasFunctions, ShapesMayBeComputed) {
  const auto ref = [](const char* layer) { return json::array({layer, 0, 0}); };
  const json config =
      Graph2()
          .Input("x", {nullptr, 2, 2})
          .Layer("TFOpLambda", {{"function", "compat.v1.shape"}}, "s", {"x"})
          .Layer("SlicingOpLambda", {{"function", "__operators__.getitem"}}, "b", {"s"}, {{"slice_spec", 0}})
          .Layer("TFOpLambda", {{"function", "reshape"}}, "y", {"x"}, {{"shape", json::array({ref("b"), 4})}})
          .Layer("Dense", {{"units", 1}, {"use_bias", false}}, "d", {"y"})
          .Config();
  ExpectNear(RunModel({config, {{"d", {{"kernel", Floats({4, 1}, {1, 1, 1, 1})}}}}}, {kX}), {5.5F});
}

TEST(KerasFunctions, AxesThatDoNotExistAreRefused) {
  const json x = Graph3::Tensor("x"), none = json::array();
  for (const auto& got :
       {Of3("Repeat", {{"repeats", 2}, {"axis", 9}}), Of3("Repeat", {{"repeats", 2}, {"axis", none}}),
        Of3("Take", {{"axis", none}}, {x, 0}), Of3("Swapaxes", {{"axis1", 0}, {"axis2", 5}}),
        Of3("Split", {{"indices_or_sections", 2}, {"axis", 7}})})
    EXPECT_FALSE(got);
}

// What is not understood must not be left out.
TEST(KerasFunctions, ArgumentsThatAreNotKnownAreRefused) {
  for (const auto& [function, keywords] :
       {std::pair<const char*, json>{"compat.v1.reduce_sum", {{"reduction_indices", 1}}},
        {"compat.v1.squeeze", {{"squeeze_dims", {0}}}},
        {"math.reduce_max", {{"axis", 1}, {"where", true}}}}) {
    const auto got = Of2(function, keywords);
    ASSERT_FALSE(got) << function;
    EXPECT_THAT(got.error().message, HasSubstr("the argument "));
  }
  for (const char* function : {"compat.v1.image.resize", "linalg.normalize"}) {
    const auto got = Of2(function, kNone);
    ASSERT_FALSE(got) << function;
    EXPECT_THAT(got.error().message,
                HasSubstr(std::string("the function ") + function + ", which differs from"));
  }
  EXPECT_TRUE(Of2("math.top_k", {{"k", 1}, {"sorted", true}, {"name", "t"}}));
  EXPECT_TRUE(Of2("transpose", {{"perm", {0, 2, 1}}, {"conjugate", false}, {"name", nullptr}}));
}

TEST(KerasFunctions, ThatAreNotKnownAreNamedWithAWayOut) {
  const auto got = Of2("signal.dct", kNone);
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message,
              HasSubstr("the function dct is unsupported for Keras files; save the model as a SavedModel"));
}

}  // namespace
}  // namespace fusebox::testing
