// SPDX-License-Identifier: Apache-2.0
// What files of Keras 3.6 and later hold besides, against its definition.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "tests/converter/import/keras/keras_graph.h"
#include "tests/converter/import/keras/keras_run.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const Tensor kFour = Floats({1, 2, 2}, {-1, 2, 0.5F, 4});

json In(const char* layer) { return Graph3::Tensor(layer); }

Result<Tensors> Zip(const json& config, const Tensors& inputs,
                    const std::map<std::string, Tensor>& weights = {}) {
  const std::string file = TestDir() + "/model.keras";
  WriteKeras(file, config, weights, "3.11.0");
  return RunFile(file, inputs);
}

Result<Tensors> OfFour(const char* op, const json& config, json args = json::array({Graph3::Tensor("x")})) {
  return Zip(Graph3().Input("x", {1, 2, 2}).Operation(op, config, "y", std::move(args)).Config(), {kFour});
}

template <class T>
std::vector<T> Elements(const Result<Tensors>& got) {
  EXPECT_TRUE(got) << got.error().message;
  const auto values = got ? got->at(0).data.As<T>() : std::span<const T>();
  return {values.begin(), values.end()};
}

const json kNoSettings = json::object();

TEST(KerasToday, ActivationsAreOperationsToo) {
  const auto e = [](double v) { return static_cast<float>(std::exp(v)); };
  ExpectNear(OfFour("Celu", {{"alpha", 2.0}}), {2 * (e(-0.5) - 1), 2, 0.5F, 4});
  ExpectNear(OfFour("Squareplus", {{"b", 5}}), {static_cast<float>((std::sqrt(6.0) - 1) / 2), 2.5F,
                                                static_cast<float>((0.5 + std::sqrt(5.25)) / 2),
                                                static_cast<float>((4 + std::sqrt(21.0)) / 2)});
  ExpectNear(OfFour("HardShrink", {{"threshold", 1.0}}), {0, 2, 0, 4});
  ExpectNear(OfFour("SoftShrink", {{"threshold", 1.0}}), {0, 1, 0, 3});
  ExpectNear(OfFour("Threshold", {{"threshold", 1.0}, {"default_value", 7.0}}), {7, 2, 7, 4});
  ExpectNear(OfFour("SparsePlus", kNoSettings), {0, 2, 0.5625F, 4});
  ExpectNear(OfFour("SparseSigmoid", kNoSettings), {0, 1, 0.75F, 1});
  ExpectNear(OfFour("Glu", {{"axis", 1}}),
             {-static_cast<float>(Sigmoid(0.5)), 2 * static_cast<float>(Sigmoid(4))});
  const json named = json::array({LayerEntry("Activation", {{"activation", "sparse_plus"}}, "a")});
  ExpectNear(Zip(SequentialConfig({1, 2, 2}, named), {kFour}), {0, 2, 0.5625F, 4});
}

TEST(KerasToday, AveragesProductsAndPiles) {
  const json x = In("x");
  ExpectNear(OfFour("Average", {{"axis", 1}}), {-0.25F, 3});
  ExpectNear(OfFour("Average", {{"axis", nullptr}}), {1.375F});
  ExpectNear(OfFour("Average", {{"axis", 1}}, {x, {1, 3}}), {0.125F, 3.5F});
  const auto two = [&](const char* op, const json& args) {
    return Zip(Graph3().Input("x", {2, 2}).Input("y", {2, 2}).Operation(op, kNoSettings, "z", args).Config(),
               {Floats({2, 2}, {1, 2, 3, 4}), Floats({2, 2}, {5, 6, 7, 8})});
  };
  const json y = In("y"), both = json::array({json::array({x, y})});
  ExpectNear(two("Dot", {x, y}), {19, 22, 43, 50});
  ExpectNear(two("Dot", {x, 2.0}), {2, 4, 6, 8});
  ExpectNear(two("Hstack", both), {1, 2, 5, 6, 3, 4, 7, 8});
  ExpectNear(two("Vstack", both), {1, 2, 3, 4, 5, 6, 7, 8});
}

TEST(KerasToday, RoundingHasItsDecimals) {
  const auto round = [](int decimals, const std::vector<float>& x) {
    const json config = Graph3()
                            .Input("x", {1, 2})
                            .Operation("Round", {{"decimals", decimals}}, "y", json::array({In("x")}))
                            .Config();
    return Zip(config, {Floats({1, 2}, x)});
  };
  ExpectNear(round(0, {1.26F, -13}), {1, -13});
  ExpectNear(round(1, {1.26F, -13}), {1.3F, -13});
  ExpectNear(round(-1, {1.26F, -13}), {0, -10});
}

// A setting that would change the result is not passed over.
TEST(KerasToday, SettingsThatAreNotUnderstoodAreRefused) {
  const auto refused = OfFour("Max", {{"axis", 1}, {"keepdims", false}, {"initial", 3.0}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("layer y (Max): the setting initial of Max"));
  ExpectNear(OfFour("Max", {{"axis", 1}, {"keepdims", false}, {"initial", nullptr}}), {0.5F, 4});
}

TEST(KerasToday, WholeNumbersStayWhole) {
  const auto whole = [](const std::string& type, const char* op, const json& args, const Tensor& x) {
    return Zip(Graph3().Input("x", {1, 2}, type).Operation(op, kNoSettings, "y", args).Config(), {x});
  };
  const json x = In("x");
  const Tensor i64 = {{DType::kI64, {1, 2}}, Buffer::Of<int64_t>(std::vector<int64_t>{5, -3})};
  const Tensor i32 = {{DType::kI32, {1, 2}}, Buffer::Of<int32_t>(std::vector<int32_t>{5, -3})};
  const Tensor flags = {{DType::kBool, {1, 2}}, Buffer::Of<uint8_t>(std::vector<uint8_t>{1, 0})};
  const Tensor bytes = {{DType::kU8, {1, 2}}, Buffer::Of<uint8_t>(std::vector<uint8_t>{255, 51})};
  EXPECT_EQ(Elements<int64_t>(whole("int64", "Add", {x, 1}, i64)), (std::vector<int64_t>{6, -2}));
  EXPECT_EQ(Elements<int64_t>(whole("int64", "Subtract", {1, x}, i64)), (std::vector<int64_t>{-4, 4}));
  EXPECT_EQ(Elements<int32_t>(whole("int32", "Multiply", {2, x}, i32)), (std::vector<int32_t>{10, -6}));
  ExpectNear(whole("int32", "TrueDivide", {x, 2}, i32), {2.5F, -1.5F});
  ExpectNear(whole("int64", "Multiply", {x, 0.5}, i64), {2.5F, -1.5F});
  ExpectNear(whole("uint8", "TrueDivide", {x, 255}, bytes), {1, 0.2F});
  EXPECT_EQ(Elements<int32_t>(whole("bool", "Multiply", {x, 3}, flags)), (std::vector<int32_t>{3, 0}));
  // Of two sizes, the larger.
  const json config = Graph3()
                          .Input("a", {1, 2}, "int32")
                          .Input("b", {1, 2}, "int64")
                          .Operation("Add", kNoSettings, "y", {In("a"), In("b")})
                          .Config();
  EXPECT_EQ(Elements<int64_t>(Zip(config, {i32, i64})), (std::vector<int64_t>{10, -6}));
}

TEST(KerasToday, HotNumbersHaveTheirType) {
  const Tensor ids = {{DType::kI32, {1, 2}}, Buffer::Of<int32_t>(std::vector<int32_t>{1, 0})};
  const auto hot = [&](const json& dtype) {
    const json settings = {{"num_classes", 2}, {"axis", -1}, {"dtype", dtype}, {"sparse", false}};
    return Zip(Graph3()
                   .Input("x", {1, 2}, "int32")
                   .Operation("OneHot", settings, "y", json::array({In("x")}))
                   .Config(),
               {ids});
  };
  EXPECT_EQ(Elements<float>(hot("float32")), (std::vector<float>{0, 1, 1, 0}));
  EXPECT_EQ(Elements<float>(hot(nullptr)), (std::vector<float>{0, 1, 1, 0}));
  EXPECT_EQ(Elements<int32_t>(hot("int32")), (std::vector<int32_t>{0, 1, 1, 0}));
}

// A model whose inputs have names is called on a dictionary.
TEST(KerasToday, InputsMayBeGivenByName) {
  json inner = Graph3()
                   .Input("p", {1, 2})
                   .Input("q", {1, 2})
                   .Operation("Subtract", kNoSettings, "d", {In("q"), In("p")})
                   .Config();
  inner["name"] = inner["config"]["name"] = "inner";
  inner["config"]["input_layers"] = {{"first", {"p", 0, 0}}, {"second", {"q", 0, 0}}};
  inner["inbound_nodes"] = {
      {{"args", json::array({json{{"second", In("b")}, {"first", In("a")}}})}, {"kwargs", kNoSettings}}};
  json of_inner = In("inner");
  of_inner["config"]["keras_history"][1] = 1;
  json config = Graph3()
                    .Input("a", {1, 2})
                    .Input("b", {1, 2})
                    .Operation("Negative", kNoSettings, "y", json::array({of_inner}))
                    .Config();
  config["config"]["layers"].push_back(std::move(inner));
  ExpectNear(Zip(config, {Floats({1, 2}, {1, 2}), Floats({1, 2}, {5, 9})}), {-4, -7});
}

// Of a model whose policy is bfloat16, which is trained in it throughout.
TEST(KerasToday, WeightsMayBeBf16) {
  const auto narrow = [](std::vector<int64_t> dims, const std::vector<float>& values) {
    std::vector<uint16_t> upper;
    for (const float value : values)
      upper.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    return Tensor{{DType::kBF16, Shape(std::move(dims))}, Buffer::Of<uint16_t>(upper)};
  };
  const Tensor kernel = narrow({2, 2}, {1.5F, -2, 0.25F, 3}), bias = narrow({2}, {0.5F, -0.0078125F});
  const json config =
      SequentialConfig({1, 2}, json::array({LayerEntry("Dense", {{"units", 2}}, "d")}), "bfloat16");
  const Tensors x = {Floats({1, 2}, {2, 4})};
  const std::vector<float> want = {4.5F, 7.9921875F};
  ExpectNear(Zip(config, x, {{"layers/dense/vars/0", kernel}, {"layers/dense/vars/1", bias}}), want);
  ExpectNear(RunModel({config, {{"d", {{"kernel", kernel}, {"bias", bias}}}}, "3.11.0"}, x), want);
}

TEST(KerasToday, PicturesOfKeras3AreVariedInTrainingOnly) {
  for (const char* layer :
       {"RandomColorDegeneration", "RandomColorJitter", "RandomErasing", "RandomGaussianBlur", "RandomInvert",
        "RandomPosterization", "RandomSaturation", "RandomSharpness"}) {
    SCOPED_TRACE(layer);
    const json settings = {{"factor", {0.0, 1.0}}, {"value_range", {0, 255}}, {"seed", nullptr}};
    ExpectNear(Zip(SequentialConfig({1, 1, 2, 1}, json::array({LayerEntry(layer, settings)})),
                   {Floats({1, 1, 2, 1}, {1, 2})}),
               {1, 2});
  }
}

}  // namespace
}  // namespace fusebox::testing
