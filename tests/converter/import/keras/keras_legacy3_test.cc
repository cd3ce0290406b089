// SPDX-License-Identifier: Apache-2.0
// The two containers of Keras 3, .keras and the older .h5, against each other and against the definition of
// what is computed. In .h5 files an operation is told from the layer of its name by its settings and
// arguments only.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "tests/converter/import/keras/keras_graph.h"
#include "tests/converter/import/keras/keras_run.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const Tensor kLeft = Floats({1, 2, 2}, {1.5F, -2, 0.5F, 4}), kRight = Floats({1, 2, 2}, {3, 0.25F, -1, 2});

json Of(const char* layer) { return Graph3::Tensor(layer); }

Graph3 TwoInputs() { return Graph3().Input("a", {1, 2, 2}).Input("b", {1, 2, 2}); }

// Both containers' results, which must be the same.
Result<Tensors> RunBoth(const Graph3& graph, const Tensors& inputs, const KerasWeights& weights = {},
                        const std::map<std::string, Tensor>& by_object = {}) {
  const std::string zip = TestDir() + "/model.keras", h5 = TestDir() + "/model.h5";
  WriteKeras(zip, graph.Config(), by_object, "3.8.0");
  WriteH5(h5, {graph.LegacyConfig(), weights, "3.8.0"});
  FUSEBOX_ASSIGN(Tensors want, RunFile(zip, inputs));
  FUSEBOX_ASSIGN(Tensors got, RunFile(h5, inputs));
  EXPECT_EQ(Values(got.at(0)), Values(want.at(0)));
  return got;
}

struct Case {
  const char* op;
  json args;
  std::function<double(double, double)> want;  // of the elements of a and b
};

void ExpectElements(const std::vector<Case>& cases) {
  for (const auto& [op, args, want] : cases) {
    SCOPED_TRACE(op + args.dump().substr(0, 60));
    std::vector<float> values;
    for (size_t i = 0; i < 4; ++i)
      values.push_back(static_cast<float>(want(Values(kLeft)[i], Values(kRight)[i])));
    const json none = json::object();
    ExpectNear(RunBoth(TwoInputs().Operation(op, none, "y", args), {kLeft, kRight}), values);
  }
}

TEST(KerasLegacy3, OperatorsOfTwoTensors) {
  const json ab = {Of("a"), Of("b")}, ba = {Of("b"), Of("a")};
  ExpectElements({
      {"Add", ab, [](double a, double b) { return a + b; }},
      {"Subtract", ab, [](double a, double b) { return a - b; }},
      {"Subtract", ba, [](double a, double b) { return b - a; }},
      {"Multiply", ab, [](double a, double b) { return a * b; }},
      {"Divide", ab, [](double a, double b) { return a / b; }},
      {"TrueDivide", ab, [](double a, double b) { return a / b; }},
      {"FloorDivide", ab, [](double a, double b) { return std::floor(a / b); }},
      {"Mod", ab, [](double a, double b) { return a - std::floor(a / b) * b; }},
      {"Maximum", ab, [](double a, double b) { return std::max(a, b); }},
      {"Minimum", ab, [](double a, double b) { return std::min(a, b); }},
  });
}

TEST(KerasLegacy3, OperatorsOfATensorAndANumber) {
  const json a = Of("a");
  ExpectElements({
      {"Add", {a, 1.0}, [](double x, double) { return x + 1; }},
      {"Add", {1, a}, [](double x, double) { return x + 1; }},
      {"Subtract", {1, a}, [](double x, double) { return 1 - x; }},
      {"Subtract", {a, 0.5}, [](double x, double) { return x - 0.5; }},
      {"Multiply", {2, a}, [](double x, double) { return 2 * x; }},
      {"Multiply", {a, -0.5}, [](double x, double) { return -0.5 * x; }},
      {"TrueDivide", {a, 255.0}, [](double x, double) { return x / 255; }},
      {"TrueDivide", {1, a}, [](double x, double) { return 1 / x; }},
      {"Power", {a, 2}, [](double x, double) { return x * x; }},
      {"Power", {2, a}, [](double x, double) { return std::pow(2, x); }},
      {"Maximum", {a, 0}, [](double x, double) { return std::max(x, 0.0); }},
      {"Minimum", {1.0, a}, [](double x, double) { return std::min(x, 1.0); }},
      {"Negative", json::array({a}), [](double x, double) { return -x; }},
      {"Absolute", json::array({a}), [](double x, double) { return std::abs(x); }},
      // An array of NumPy and a tensor of the backend, written out.
      {"Add",
       {a, {{"class_name", "__numpy__"}, {"config", {{"value", {0.5, 0.5}}, {"dtype", "float32"}}}}},
       [](double x, double) { return x + 0.5; }},
      {"Multiply",
       {{{"class_name", "__tensor__"}, {"config", {{"value", 3.0}, {"dtype", "float32"}}}}, a},
       [](double x, double) { return x * 3; }},
  });
}

// keras.ops.add(x1=a, x2=b) of a class that was made by hand.
TEST(KerasLegacy3, OperandsMayBeNamed) {
  const json none = json::object(), no_args = json::array();
  ExpectNear(
      RunBoth(TwoInputs().Operation("Subtract", none, "y", no_args, {{"x1", Of("b")}, {"x2", Of("a")}}),
              {kLeft, kRight}),
      {1.5F, 2.25F, -1.5F, -2});
  ExpectNear(RunBoth(TwoInputs().Operation("Add", none, "y", json::array({Of("a")}), {{"x2", 2.0}}),
                     {kLeft, kRight}),
             {3.5F, 0, 2.5F, 6});
}

// The layers of the same names, which have one list, or one tensor.
TEST(KerasLegacy3, LayersOfTheSameNamesStayLayers) {
  const json none = json::object(), ab = json::array({json::array({Of("a"), Of("b")})});
  const auto expect = [&](const char* layer, const json& config, const std::vector<float>& want) {
    SCOPED_TRACE(layer);
    ExpectNear(RunBoth(TwoInputs().Layer(layer, config, "y", ab), {kLeft, kRight}), want);
  };
  expect("Add", none, {4.5F, -1.75F, -0.5F, 6});
  expect("Subtract", none, {-1.5F, -2.25F, 1.5F, 2});
  expect("Multiply", none, {4.5F, -0.5F, -0.5F, 8});
  expect("Average", none, {2.25F, -0.875F, -0.25F, 3});
  expect("Maximum", none, {3, 0.25F, 0.5F, 4});
  expect("Minimum", none, {1.5F, -2, -1, 2});
  expect("Concatenate", {{"axis", -1}}, {1.5F, -2, 3, 0.25F, 0.5F, 4, -1, 2});
  expect("Dot", {{"axes", {2, 2}}, {"normalize", false}}, {4, -5.5F, 2.5F, 7.5F});
  ExpectNear(RunBoth(TwoInputs().Layer("Reshape", {{"target_shape", {4}}}, "y", json::array({Of("a")})),
                     {kLeft, kRight}),
             Values(kLeft));
  ExpectNear(RunBoth(TwoInputs().Layer("Reshape", {{"target_shape", {4, 1}}}, "y", json::array({Of("a")})),
                     {kLeft, kRight}),
             Values(kLeft));
}

// Operations whose names are layers' too, and those of no layer.
TEST(KerasLegacy3, OperationsHaveTheirSettings) {
  const json none = json::object(), only_a = json::array({Of("a")});
  const json ab = json::array({json::array({Of("a"), Of("b")})});
  const auto expect = [&](const char* op, const json& config, const json& args,
                          const std::vector<float>& want) {
    SCOPED_TRACE(op);
    ExpectNear(RunBoth(TwoInputs().Operation(op, config, "y", args), {kLeft, kRight}), want);
  };
  expect("Concatenate", {{"axis", 1}}, ab, {1.5F, -2, 0.5F, 4, 3, 0.25F, -1, 2});
  expect("Reshape", {{"newshape", {1, 4}}}, only_a, Values(kLeft));
  expect("Softmax", {{"axis", 1}}, only_a,
         {static_cast<float>(Sigmoid(1)), static_cast<float>(Sigmoid(-6)), static_cast<float>(Sigmoid(-1)),
          static_cast<float>(Sigmoid(6))});
  expect("Matmul", none, {Of("a"), Of("b")}, {6.5F, -3.625F, -2.5F, 8.125F});
  expect("Mean", {{"axis", {1}}, {"keepdims", false}}, only_a, {1, 1});
  expect("Relu", none, only_a, {1.5F, 0, 0.5F, 4});
  expect("Transpose", {{"axes", {0, 2, 1}}}, only_a, {1.5F, 0.5F, -2, 4});
  const json all = {{"class_name", "__slice__"},
                    {"config", {{"start", nullptr}, {"stop", nullptr}, {"step", nullptr}}}};
  expect("GetItem", none, {Of("a"), {all, 0}}, {1.5F, -2});
}

// A step that one of two layers masks is masked in their sum if that is a layer's; an operator knows nothing
// of masks.
TEST(KerasLegacy3, OperatorsPassNoMasks) {
  const auto graph = [](bool layer) {
    Graph3 out;
    out.Input("x", {1, 3, 1}).Layer("Masking", {{"mask_value", 0.0}}, "m", json::array({Of("x")}));
    const json both = {Of("m"), Of("m")};
    if (layer) out.Layer("Add", json::object(), "sum", json::array({both}));
    else out.Operation("Add", json::object(), "sum", both);
    return out.Layer("GlobalAveragePooling1D", json::object(), "y", json::array({Of("sum")}));
  };
  const Tensors x = {Floats({1, 3, 1}, {3, 0, 6})};
  ExpectNear(RunBoth(graph(true), x), {9});
  ExpectNear(RunBoth(graph(false), x), {6});
}

TEST(KerasLegacy3, LayersOperationsAndModelsTogether) {
  const KerasWeight kernel = RandomWeight("kernel", {2, 2}), bias = RandomWeight("bias", {2});
  const json dense = {{"units", 2}, {"activation", "relu"}, {"quantization_config", nullptr}};
  json inner = Graph3()
                   .Input("ix", {nullptr, 2, 2})
                   .Layer("Dense", dense, "d", json::array({Of("ix")}))
                   .Operation("Multiply", json::object(), "twice", {Of("d"), 2})
                   .Config();
  inner["name"] = inner["config"]["name"] = "inner";
  inner["inbound_nodes"] = {{{"args", json::array({Of("s")})}, {"kwargs", json::object()}}};
  json of_inner = Of("inner");
  of_inner["config"]["keras_history"][1] = 1;
  json config = TwoInputs()
                    .Operation("Add", json::object(), "s", {Of("a"), Of("b")})
                    .Operation("Subtract", json::object(), "y", {1.0, of_inner})
                    .Config();
  config["config"]["layers"].push_back(std::move(inner));
  const std::string zip = TestDir() + "/model.keras", h5 = TestDir() + "/model.h5";
  WriteKeras(zip, config,
             {{"layers/functional/layers/dense/vars/0", kernel.value},
              {"layers/functional/layers/dense/vars/1", bias.value}},
             "3.8.0");
  WriteH5(h5, {Graph3::Legacy(config), {{"inner", {kernel, bias}}}, "3.8.0"});
  const auto want = RunFile(zip, {kLeft, kRight});
  ASSERT_TRUE(want) << want.error().message;
  ExpectNear(RunFile(h5, {kLeft, kRight}), Values(want->at(0)));
  std::vector<float> computed;
  const auto k = Values(kernel.value), c = Values(bias.value);
  for (size_t row = 0; row < 2; ++row)
    for (size_t unit = 0; unit < 2; ++unit) {
      double sum = c[unit];
      for (size_t i = 0; i < 2; ++i)
        sum += (Values(kLeft)[row * 2 + i] + Values(kRight)[row * 2 + i]) * k[i * 2 + unit];
      computed.push_back(static_cast<float>(1 - 2 * std::max(sum, 0.0)));
    }
  ExpectNear(want, computed);
}

// A class that no one knows is not taken for an operation.
TEST(KerasLegacy3, UnknownClassesAreNamed) {
  const auto refusal = [](const Graph3& graph) {
    const std::string file = TestDir() + "/model.h5";
    WriteH5(file, {graph.LegacyConfig(), {}, "3.8.0"});
    const auto run = RunFile(file, {kLeft, kRight});
    return run ? "runs" : run.error().message;
  };
  EXPECT_THAT(refusal(TwoInputs().Operation("Nonsense", json::object(), "y", json::array({Of("a")}))),
              HasSubstr("layer y (Nonsense): unsupported class"));
  // It has what all layers have.
  EXPECT_THAT(refusal(TwoInputs().Layer("Norm", json::object(), "y", json::array({Of("a")}))),
              HasSubstr("layer y (Norm): unsupported class"));
}

}  // namespace
}  // namespace fusebox::testing
