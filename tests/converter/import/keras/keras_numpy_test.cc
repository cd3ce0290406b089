// SPDX-License-Identifier: Apache-2.0
// Operations of keras.ops.numpy against their definition: elements, statistics and products.
#include <gmock/gmock.h>

#include <numbers>

#include "tests/converter/import/keras/keras_functions.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

json X() { return Graph3::Tensor("x"); }

TEST(KerasNumpy, OfElementsInF64) {
  const Tensor x = Floats({1, 4}, {-2, -0.25F, 0, 3});
  const std::map<std::string, double (*)(double)> functions = {
      {"Cbrt", std::cbrt},
      {"Fabs", std::fabs},
      {"Rad2deg", [](double v) { return v * 180 / std::numbers::pi; }},
      {"Sinc",
       [](double v) { return v == 0 ? 1 : std::sin(std::numbers::pi * v) / (std::numbers::pi * v); }}};
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    std::vector<float> want;
    for (const float v : Values(x)) want.push_back(static_cast<float>(function(v)));
    ExpectNear(Of3(name, kNone, {}, x), want);
  }
  ExpectNear(Of3("Conjugate", kNone, {}, x), Values(x));
  ExpectNear(Of3("Real", kNone, {}, x), Values(x));
  ExpectNear(Of3("EmptyLike", kNone, {}, x), {0, 0, 0, 0});
}

TEST(KerasNumpy, OfPairsInF64) {
  const Tensor x = Floats({1, 4}, {-2, 0, 5, 90}), y = Floats({1, 4}, {0.5F, 0.75F, -3, 100});
  const std::map<std::string, double (*)(double, double)> functions = {
      {"Fmax", std::fmax},
      {"Fmin", std::fmin},
      {"Fmod", std::fmod},
      {"Logaddexp2", [](double a, double b) { return std::log2(std::exp2(a) + std::exp2(b)); }},
      {"Heaviside", [](double a, double b) { return a < 0   ? 0
                                                    : a > 0 ? 1
                                                            : b; }}};
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    std::vector<float> want;
    for (size_t i = 0; i < 4; ++i) want.push_back(static_cast<float>(function(Values(x)[i], Values(y)[i])));
    ExpectNear(OfPair3(name, kNone, x, y), want);
  }
  ExpectNear(OfPair3("Ldexp", kNone, Floats({1, 2}, {3, -5}), Floats({1, 2}, {2, -1})), {12, -2.5F});
  ExpectNear(OfPair3("Fmax", kNone, Floats({1, 2}, {kNan, 1}), Floats({1, 2}, {2, kNan})), {2, 1});
}

TEST(KerasNumpy, OfNumbersThatAreNotFinite) {
  const Tensor x = Floats({1, 4}, {kNan, kInf, -kInf, 1});
  ExpectExactly<uint8_t>(Of3("Isposinf", kNone, {}, x), {0, 1, 0, 0});
  ExpectExactly<uint8_t>(Of3("Isneginf", kNone, {}, x), {0, 0, 1, 0});
  ExpectExactly<uint8_t>(Of3("Isreal", kNone, {}, x), {1, 1, 1, 1});
  ExpectNear(Of3("NanToNum", {{"nan", 7.0}, {"posinf", 8.0}, {"neginf", -9.0}}, {}, x), {7, 8, -9, 1});
  const float most = std::numeric_limits<float>::max();
  ExpectNear(Of3("NanToNum", {{"nan", 0.0}, {"posinf", nullptr}, {"neginf", nullptr}}, {}, x),
             {0, most, -most, 1});
  const Tensor y = Floats({1, 4}, {kNan, kInf, 2, 1.000001F});
  ExpectExactly<uint8_t>(OfPair3("Isclose", kNone, x, y), {0, 1, 0, 1});
  ExpectExactly<uint8_t>(OfPair3("Isclose", {{"equal_nan", true}}, x, y), {1, 1, 0, 1});
}

TEST(KerasNumpy, ThatLookUp) {
  ExpectExactly<int32_t>(Of3("Digitize", kNone, {X(), {0.0, 0.5, 2.0}}), {0, 3, 2, 3});
  ExpectExactly<int32_t>(
      OfPair3("SearchSorted", {{"side", "left"}}, Floats({3}, {0, 0.5F, 2}), Floats({1, 3}, {-1, 0.5F, 3})),
      {0, 1, 3});
  ExpectExactly<int32_t>(
      OfPair3("SearchSorted", {{"side", "right"}}, Floats({3}, {0, 0.5F, 2}), Floats({1, 3}, {-1, 0.5F, 3})),
      {0, 2, 3});
  ExpectExactly<uint8_t>(Of3("IsIn", kNone, {X(), {4.0, -1.0}}), {1, 0, 0, 1});
  ExpectExactly<uint8_t>(Of3("IsIn", {{"invert", true}}, {X(), {4.0, -1.0}}), {0, 1, 1, 0});
  ExpectExactly<int32_t>(Of3("Size", kNone), {4});
  ExpectExactly<int32_t>(Of3("Ndim", kNone), {3});
  EXPECT_THAT(Of3("Digitize", kNone, {X(), {2.0, 0.5}}).error().message, HasSubstr("bins that fall"));
}

TEST(KerasNumpy, SelectUsesTheFirstConditionThatHolds) {
  const std::string file = TestDir() + "/select.keras";
  const auto condition = [](const char* name) { return Graph3::Tensor(name); };
  WriteKeras(file,
             Graph3()
                 .Input("x", {1, 4})
                 .Operation("Greater", kNone, "a", {X(), 1.0})
                 .Operation("Greater", kNone, "b", {X(), 0.0})
                 .Operation("Select", kNone, "y", {{condition("a"), condition("b")}, {X(), 10.0}, -7.0})
                 .Config(),
             {});
  ExpectNear(RunFile(file, {Floats({1, 4}, {-1, 0.5F, 2, 4})}), {-7, 10, 2, 4});
}

TEST(KerasNumpy, StatisticsOfTheNumbersThatThereAre) {
  const Tensor x = Floats({1, 2, 3}, {1, kNan, 4, kNan, kNan, -2});
  const json last = {{"axis", -1}, {"keepdims", false}};
  ExpectNear(Of3("Nansum", last, {}, x), {5, -2});
  ExpectNear(Of3("Nanprod", last, {}, x), {4, -2});
  ExpectNear(Of3("Nanmax", last, {}, x), {4, -2});
  ExpectNear(Of3("Nanmin", last, {}, x), {1, -2});
  ExpectNear(Of3("Nanmean", last, {}, x), {2.5F, -2});
  ExpectNear(Of3("Nanvar", last, {}, x), {2.25F, 0});
  ExpectNear(Of3("Nanstd", {{"axis", -1}, {"keepdims", true}}, {}, x), {1.5F, 0});
  const auto none = Of3("Nanmax", last, {}, Floats({1, 1, 2}, {kNan, kNan}));
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(std::isnan(Values(none->at(0))[0]));
  ExpectNear(Of3("Ptp", {{"axis", -1}}), {3, 3.5F});
}

TEST(KerasNumpy, OrderStatistics) {
  const Tensor x = Floats({1, 2, 4}, {4, 1, 8, 2, -1, 0, 5, 5});
  const json last = {{"axis", -1}, {"keepdims", false}};
  ExpectNear(Of3("Median", last, {}, x), {3, 2.5F});
  ExpectNear(Of3("Median", {{"axis", nullptr}, {"keepdims", false}}, {}, x), {3});
  ExpectNear(Of3("Median", {{"axis", {1}}}, {}, x), {1.5F, 0.5F, 6.5F, 3.5F});
  const auto kept = Of3("Median", {{"axis", 1}, {"keepdims", true}}, {}, x);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(ToString(kept->at(0).type), "f32[1,1,4]");
  const auto at = [&](const char* function, const json& q, const char* method) {
    return Of3(function, {{"axis", -1}, {"method", method}, {"keepdims", false}}, {X(), q}, x);
  };
  // Rising: 1 2 4 8 and -1 0 5 5; a quarter is at 0.75 of three steps.
  ExpectNear(at("Quantile", 0.25, "linear"), {1.75F, -0.25F});
  ExpectNear(at("Percentile", 25, "linear"), {1.75F, -0.25F});
  ExpectNear(at("Quantile", 0.25, "lower"), {1, -1});
  ExpectNear(at("Quantile", 0.25, "higher"), {2, 0});
  ExpectNear(at("Quantile", 0.25, "midpoint"), {1.5F, -0.5F});
  ExpectNear(at("Quantile", {0.0, 1.0}, "nearest"), {1, -1, 8, 5});
  const auto nan = Of3("Median", last, {}, Floats({1, 1, 3}, {1, kNan, 2}));
  ASSERT_TRUE(nan) << nan.error().message;
  EXPECT_TRUE(std::isnan(Values(nan->at(0))[0]));
  EXPECT_THAT(at("Quantile", 1.5, "linear").error().message, HasSubstr("its place 1.5"));
}

TEST(KerasNumpy, DifferencesAndAreas) {
  const Tensor x = Floats({1, 4}, {1, 4, 9, 16});
  ExpectNear(Of3("Diff", {{"n", 1}, {"axis", -1}}, {}, x), {3, 5, 7});
  ExpectNear(Of3("Diff", {{"n", 2}, {"axis", 1}}, {}, x), {2, 2});
  ExpectNear(Of3("Trapezoid", {{"x", nullptr}, {"dx", 0.5}, {"axis", -1}}, {}, x), {10.75F});
}

TEST(KerasNumpy, ProductsOfVectorsAndTensors) {
  const Tensor a = Floats({2, 3}, {1, 2, 3, 4, 5, 6}), b = Floats({2, 3}, {1, 0, -1, 2, 1, 0});
  ExpectNear(OfPair3("Outer", kNone, Floats({2}, {2, 3}), Floats({3}, {1, 0, -1})), {2, 0, -2, 3, 0, -3});
  ExpectNear(OfPair3("Vdot", kNone, a, b), {1 - 3 + 8 + 5});
  ExpectNear(OfPair3("Inner", kNone, a, b), {-2, 4, -2, 13});
  ExpectNear(OfPair3("Tensordot", {{"axes", 2}}, a, b), {11});
  ExpectNear(OfPair3("Tensordot", {{"axes", {{1}, {1}}}}, a, b), {-2, 4, -2, 13});
  ExpectNear(OfPair3("Tensordot", {{"axes", {0, 0}}}, a, b), {9, 4, -1, 12, 5, -2, 15, 6, -3});
  ExpectNear(OfPair3("Cross", {{"axisa", -1}, {"axisb", -1}, {"axisc", -1}}, a, b), {-2, 4, -2, -6, 12, -6});
  const Tensor v = Floats({3}, {1, 0, -1});
  ExpectNear(OfPair3("Matmul", kNone, a, v), {-2, -2});
  ExpectNear(OfPair3("Dot", kNone, a, v), {-2, -2});
  ExpectNear(OfPair3("Matmul", kNone, Floats({2}, {1, -1}), a), {-3, -3, -3});
}

TEST(KerasNumpy, Diagonals) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto at = [&](const char* function, int offset) {
    return Of3(function, {{"offset", offset}, {"axis1", 0}, {"axis2", 1}}, {}, x);
  };
  ExpectNear(at("Diagonal", 0), {1, 5});
  ExpectNear(at("Diagonal", 1), {2, 6});
  ExpectNear(at("Diagonal", -1), {4});
  ExpectNear(at("Trace", 1), {8});
  ExpectNear(Of3("Diag", {{"k", 0}}, {}, Floats({2}, {3, 4})), {3, 0, 0, 4});
  ExpectNear(Of3("Diag", {{"k", 1}}, {}, x), {2, 6});
  ExpectNear(Of2("linalg.diag_part", kNone), {-1, 4});
  ExpectNear(Of2("linalg.trace", kNone), {3});
  ExpectNear(Of2("linalg.diag", kNone, Floats({1, 2}, {3, 4})), {3, 0, 0, 4});
  ExpectNear(Of2("linalg.set_diag", {{"diagonal", {{8, 9}}}}), {8, 2, 0.5F, 9});
}

TEST(KerasNumpy, ThatMoveAndJoin) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  ExpectNear(Of3("Fliplr", kNone, {}, x), {3, 2, 1, 6, 5, 4});
  ExpectNear(Of3("Flipud", kNone, {}, x), {4, 5, 6, 1, 2, 3});
  const auto turned = [&](int k) { return Of3("Rot90", {{"k", k}, {"axes", {0, 1}}}, {}, x); };
  ExpectNear(turned(1), {3, 6, 2, 5, 1, 4});
  ExpectNear(turned(2), {6, 5, 4, 3, 2, 1});
  ExpectNear(turned(-1), {4, 1, 5, 2, 6, 3});
  ExpectNear(OfPair3("Append", {{"axis", 1}}, Floats({2, 1}, {7, 8}), x), {7, 1, 2, 3, 8, 4, 5, 6});
  ExpectNear(OfPair3("Append", {{"axis", nullptr}}, Floats({1}, {7}), x), {7, 1, 2, 3, 4, 5, 6});
  const json twice = json::array({json::array({X(), X()})});
  ExpectNear(Of3("ColumnStack", kNone, twice, Floats({2}, {1, 2})), {1, 1, 2, 2});
  ExpectNear(Of3("Dstack", kNone, twice, Floats({2, 2}, {1, 2, 3, 4})), {1, 1, 2, 2, 3, 3, 4, 4});
  ExpectNear(Of3("Hsplit", {{"indices_or_sections", 3}}, {}, x), {1, 4});
  ExpectNear(Of3("Vsplit", {{"indices_or_sections", 2}}, {}, x), {1, 2, 3});
}

TEST(KerasNumpy, CastsToOtherTypes) {
  const Tensor x = Floats({1, 3}, {-300.5F, 1.75F, 300});
  ExpectExactly<uint8_t>(Of3("SaturateCast", {{"dtype", "uint8"}}, {}, x), {0, 1, 255});
  ExpectExactly<int8_t>(Of3("SaturateCast", {{"dtype", "int8"}}, {}, x), {-128, 1, 127});
  ExpectExactly<int16_t>(Of3("Cast", {{"dtype", "int16"}}, {}, x), {-300, 1, 300});
  ExpectNear(Of3("Cast", {{"dtype", "float16"}}, {}, x), {-300.5F, 1.75F, 300});
  ExpectExactly<int32_t>(Of3("ConvertToTensor", {{"dtype", "int32"}}, {}, x), {-300, 1, 300});
}

TEST(KerasNumpy, RearrangeSplitsPermutesAndMerges) {
  const Tensor x = Floats({1, 2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto as = [&](const char* pattern, const json& sizes) {
    const std::string file = TestDir() + "/rearrange.keras";
    WriteKeras(file,
               Graph3()
                   .Input("x", {nullptr, 2, 6})
                   .Operation("Rearrange", kNone, "y", {X(), pattern}, sizes)
                   .Config(),
               {});
    return RunFile(file, {x});
  };
  ExpectNear(as("b t c -> b c t", kNone), {1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12});
  const auto merged = as("b t (h d) -> b h (t d)", {{"h", 3}});
  ExpectNear(merged, {1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12});
  ASSERT_TRUE(merged);
  EXPECT_EQ(ToString(merged->at(0).type), "f32[1,3,4]");
  ExpectNear(as("b t c -> (b t) c", kNone), Values(x));
  EXPECT_THAT(as("b t c -> b t", kNone).error().message, HasSubstr("its pattern b t c -> b t for"));
  EXPECT_THAT(as("b t (h d) -> b h t d", {{"h", 4}}).error().message, HasSubstr("its sizes for"));
}

}  // namespace
}  // namespace fusebox::testing
