// SPDX-License-Identifier: Apache-2.0
// Layers that TensorFlow.js does not have, against their definition; forms of files that must come to the same; and both containers.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/converter/import/keras/keras_cases.h"
#include "tests/e2e/pipeline.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;

std::shared_ptr<Registry> Rnn() {
  static const auto registry = Plugins();
  return *registry;
}

Result<Tensors> RunFile(const std::string& file, const Tensors& inputs,
                        converter::Composites composites = converter::Composites::kInline) {
  converter::Options options;
  options.registry = Rnn();
  options.composites = composites;
  FUSEBOX_ASSIGN(const Written written, Convert(file, options, "out"));
  FUSEBOX_ASSIGN(const auto session, Open(written.path, Rnn()));
  return Invoke(*session, inputs);
}

Result<Tensors> RunModel(const KerasFixture& model, const Tensors& inputs) {
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, model);
  return RunFile(file, inputs);
}

std::vector<float> Values(const Tensor& tensor) {
  const auto values = tensor.data.As<float>();
  return {values.begin(), values.end()};
}

void ExpectNear(const Result<Tensors>& got, const std::vector<float>& want) {
  ASSERT_TRUE(got) << got.error().message;
  const auto values = Values(got->at(0));
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(values[i], want[i], 1e-5 + 1e-4 * std::abs(want[i])) << i;
}

const std::vector<float>& Weight(const KerasCase& one, const std::string& name) {
  static std::vector<float> values;
  for (const KerasWeight& weight : one.model.weights[0].second)
    if (weight.name == name) values = Values(weight.value);
  return values;
}

double Sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

// Three gates z, r, h from the input and from the state, with a bias each.
std::vector<float> GruResetAfter(const KerasCase& one, const Tensor& x, int steps, int n, int u) {
  const auto kernel = Weight(one, "kernel"), recurrent = Weight(one, "recurrent_kernel"),
             bias = Weight(one, "bias");
  const auto in = Values(x);
  std::vector<double> h(static_cast<size_t>(u), 0);
  std::vector<float> out;
  for (int t = 0; t < steps; ++t) {
    const auto part = [&](const std::vector<float>& by, const auto& v, int size, int offset, int bias_at,
                          int j) {
      double sum = bias[static_cast<size_t>(bias_at + j)];
      for (int i = 0; i < size; ++i)
        sum += v[static_cast<size_t>(offset + i)] * by[static_cast<size_t>(i * 3 * u + j)];
      return sum;
    };
    std::vector<double> next(h);
    for (int j = 0; j < u; ++j) {
      const auto of_x = [&](int gate) { return part(kernel, in, n, t * n, 0, gate * u + j); };
      const auto of_h = [&](int gate) { return part(recurrent, h, u, 0, 3 * u, gate * u + j); };
      const double z = Sigmoid(of_x(0) + of_h(0)), r = Sigmoid(of_x(1) + of_h(1));
      next[static_cast<size_t>(j)] =
          z * h[static_cast<size_t>(j)] + (1 - z) * std::tanh(of_x(2) + r * of_h(2));
    }
    h = next;
    for (const double v : h) out.push_back(static_cast<float>(v));
  }
  return out;
}

TEST(KerasLayers, GruAppliesTheResetGateAfterItsProduct) {
  const KerasCase one =
      OneLayer("", "GRU", {{"units", 3}, {"reset_after", true}, {"return_sequences", true}}, {1, 5, 4},
               {{"kernel", {4, 9}}, {"recurrent_kernel", {3, 9}}, {"bias", {2, 9}}});
  const Tensor x = Random({DType::kF32, {1, 5, 4}}, 3);
  ExpectNear(RunModel(one.model, {x}), GruResetAfter(one, x, 5, 4, 3));
}

TEST(KerasLayers, UnitNormalizationGivesLengthOne) {
  const KerasCase one = OneLayer("", "UnitNormalization", {{"axis", -1}}, {1, 2, 3});
  ExpectNear(RunModel(one.model, {Floats({1, 2, 3}, {3, 0, 4, 1, 2, 2})}),
             {0.6f, 0, 0.8f, 1 / 3.f, 2 / 3.f, 2 / 3.f});
}

TEST(KerasLayers, GroupNormalizationNormalisesGroupsOfChannels) {
  const KerasCase one =
      OneLayer("", "GroupNormalization",
               {{"groups", 2}, {"epsilon", 0.0}, {"scale", false}, {"center", false}}, {1, 2, 4});
  // Groups {1, 3, 5, 7} and {0, 4, 0, 4}.
  const float a = std::sqrt(5.f);
  ExpectNear(RunModel(one.model, {Floats({1, 2, 4}, {1, 3, 0, 4, 5, 7, 0, 4})}),
             {-3 / a, -1 / a, -1, 1, 1 / a, 3 / a, -1, 1});
}

TEST(KerasLayers, NormalizationUsesItsStoredStatistics) {
  KerasCase one = OneLayer("", "Normalization", {{"axis", {-1}}}, {1, 2});
  one.model.weights = {{"layer", {{"mean", Floats({2}, {1, 2})}, {"variance", Floats({2}, {4, 0.25f})}}}};
  ExpectNear(RunModel(one.model, {Floats({1, 2}, {3, 3})}), {1, 2});
}

TEST(KerasLayers, UpSamplingOfOneDimensionRepeats) {
  const KerasCase one = OneLayer("", "UpSampling1D", {{"size", 2}}, {1, 2, 2});
  ExpectNear(RunModel(one.model, {Floats({1, 2, 2}, {1, 2, 3, 4})}), {1, 2, 1, 2, 3, 4, 3, 4});
}

TEST(KerasLayers, PaddingAndCroppingOfOneAndThreeDimensions) {
  const KerasCase pad = OneLayer("", "ZeroPadding1D", {{"padding", {1, 2}}}, {1, 1, 1});
  ExpectNear(RunModel(pad.model, {Floats({1, 1, 1}, {5})}), {0, 5, 0, 0});
  const KerasCase crop =
      OneLayer("", "Cropping3D", {{"cropping", {{1, 0}, {0, 0}, {0, 1}}}}, {1, 2, 1, 2, 1});
  ExpectNear(RunModel(crop.model, {Floats({1, 2, 1, 2, 1}, {1, 2, 3, 4})}), {3});
}

TEST(KerasLayers, TransposedConvolutionOfOneDimension) {
  KerasCase one =
      OneLayer("", "Conv1DTranspose",
               {{"filters", 1}, {"kernel_size", 2}, {"strides", 2}, {"use_bias", false}}, {1, 2, 1});
  one.model.weights = {{"layer", {{"kernel", Floats({2, 1, 1}, {1, 10})}}}};
  ExpectNear(RunModel(one.model, {Floats({1, 2, 1}, {1, 2})}), {1, 10, 2, 20});
}

TEST(KerasLayers, CausalConvolutionLooksBack) {
  KerasCase one = OneLayer("", "Conv1D",
                           {{"filters", 1},
                            {"kernel_size", {2}},
                            {"strides", {1}},
                            {"padding", "causal"},
                            {"dilation_rate", {2}},
                            {"use_bias", false}},
                           {1, 4, 1});
  one.model.weights = {{"layer", {{"kernel", Floats({2, 1, 1}, {10, 1})}}}};
  ExpectNear(RunModel(one.model, {Floats({1, 4, 1}, {1, 2, 3, 4})}), {1, 2, 13, 24});
}

TEST(KerasLayers, SeparableConvolutionOfOneDimension) {
  KerasCase one =
      OneLayer("", "SeparableConv1D",
               {{"filters", 1}, {"kernel_size", 2}, {"strides", 1}, {"use_bias", false}}, {1, 3, 2});
  one.model.weights = {{"layer",
                        {{"depthwise_kernel", Floats({2, 2, 1}, {1, 2, 3, 4})},
                         {"pointwise_kernel", Floats({1, 2, 1}, {1, 10})}}}};
  // Channel a: x[t] + 3 x[t+1]; channel b: 2 x[t] + 4 x[t+1]; then a + 10 b.
  ExpectNear(RunModel(one.model, {Floats({1, 3, 2}, {1, 1, 2, 0, 0, 1})}), {7 + 10 * 2, 2 + 10 * 4});
}

TEST(KerasLayers, ReluBelowItsThresholdIsALine) {
  const KerasCase one =
      OneLayer("", "ReLU", {{"max_value", 4.0}, {"negative_slope", 0.5}, {"threshold", 1.0}}, {1, 4});
  ExpectNear(RunModel(one.model, {Floats({1, 4}, {-1, 0.5f, 2, 9})}), {-1, -0.25f, 2, 4});
}

TEST(KerasLayers, HardSigmoidOfKeras3IsAnotherFunction) {
  KerasCase one = OneLayer("", "Activation", {{"activation", "hard_sigmoid"}}, {1, 2});
  ExpectNear(RunModel(one.model, {Floats({1, 2}, {1, -1})}), {0.7f, 0.3f});
  one.model.version = "3.0.0";
  ExpectNear(RunModel(one.model, {Floats({1, 2}, {1, -1})}), {4 / 6.f, 2 / 6.f});
}

// softmax(q k^T) v, with the heads' projections written out.
TEST(KerasLayers, AttentionWeighsValues) {
  json config = SequentialConfig({1, 2, 2}, json::array())["config"];
  config["layers"].push_back(LayerEntry("Attention", {{"use_scale", false}}));
  for (json& layer : config["layers"]) {
    layer["name"] = layer["config"]["name"];
    layer["inbound_nodes"] = json::array();
  }
  config["layers"][1]["inbound_nodes"] =
      json::array({json::array({{"x", 0, 0, json::object()}, {"x", 0, 0, json::object()}})});
  config["input_layers"] = json::array({{"x", 0, 0}});
  config["output_layers"] = json::array({{"layer", 0, 0}});
  // Scores of rows (1, 0) and (1, 1): 1, 1 and 1, 2.
  ExpectNear(
      RunModel({{{"class_name", "Functional"}, {"config", config}}, {}}, {Floats({1, 2, 2}, {1, 0, 1, 1})}),
      {1, 0.5f, 1, static_cast<float>(Sigmoid(1))});
}

TEST(KerasLayers, MultiHeadAttentionProjectsMixesAndProjects) {
  // One head of size one: q = x0 + 1, k = x1, v = x0 - x1; the output doubles.
  json config = {{"name", "model"}, {"layers", json::array()}};
  config["layers"].push_back(
      {{"class_name", "InputLayer"},
       {"name", "x"},
       {"config", {{"name", "x"}, {"batch_input_shape", {1, 2, 2}}, {"dtype", "float32"}}},
       {"inbound_nodes", json::array()}});
  json call = json::array({"x", 0, 0, {{"value", {"x", 0, 0}}}});
  config["layers"].push_back({{"class_name", "MultiHeadAttention"},
                              {"name", "layer"},
                              {"config", {{"name", "layer"}, {"num_heads", 1}, {"key_dim", 1}}},
                              {"inbound_nodes", json::array({json::array({call})})}});
  config["input_layers"] = json::array({{"x", 0, 0}});
  config["output_layers"] = json::array({{"layer", 0, 0}});
  const KerasWeights weights = {{"layer",
                                 {{"query/kernel", Floats({2, 1, 1}, {1, 0})},
                                  {"query/bias", Floats({1, 1}, {1})},
                                  {"key/kernel", Floats({2, 1, 1}, {0, 1})},
                                  {"key/bias", Floats({1, 1}, {0})},
                                  {"value/kernel", Floats({2, 1, 1}, {1, -1})},
                                  {"value/bias", Floats({1, 1}, {0})},
                                  {"attention_output/kernel", Floats({1, 1, 2}, {2, 0})},
                                  {"attention_output/bias", Floats({2}, {0, 7})}}}};
  // x = (1, 0), (3, 2): q = 2, 4; k = 0, 2; v = 1, 1: any mixture is 1.
  ExpectNear(RunModel({{{"class_name", "Functional"}, {"config", config}}, weights},
                      {Floats({1, 2, 2}, {1, 0, 3, 2})}),
             {2, 7, 2, 7});
  // x = (0, 0), (1, 1) with v = 0, 0 + bias... the first row's weights are sigmoid of the difference of the scores.
  KerasWeights other = weights;
  other[0].second[4].value = Floats({2, 1, 1}, {1, 0});
  const float row0 = static_cast<float>(Sigmoid(1)), row1 = static_cast<float>(Sigmoid(2));
  ExpectNear(RunModel({{{"class_name", "Functional"}, {"config", config}}, other},
                      {Floats({1, 2, 2}, {0, 0, 1, 1})}),
             {2 * row0, 7, 2 * row1, 7});
}

KerasCase PlainLstm() {
  return OneLayer("", "LSTM", {{"units", 3}, {"activation", "tanh"}, {"recurrent_activation", "sigmoid"}},
                  {1, 5, 4}, {{"kernel", {4, 12}}, {"recurrent_kernel", {3, 12}}, {"bias", {12}}});
}

// Columns [from, from + count) of a matrix, or elements of a vector.
Tensor Columns(const Tensor& t, int64_t from, int64_t count) {
  const int64_t width = t.type.shape.dims().back();
  const auto values = Values(t);
  std::vector<float> out;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t column = static_cast<int64_t>(i) % width;
    if (column >= from && column < from + count) out.push_back(values[i]);
  }
  Shape shape = t.type.shape;
  shape.dims().back() = count;
  return Floats(shape, out);
}

TEST(KerasLayers, LstmOfKeras1ComesGateByGate) {
  const KerasCase plain = PlainLstm();
  const Tensor x = Random({DType::kF32, {1, 5, 4}}, 3);
  const auto want = RunModel(plain.model, {x});
  ASSERT_TRUE(want) << want.error().message;
  KerasFixture old = plain.model;
  old.version = "1.2.2";
  old.weights[0].second.clear();
  for (const int64_t gate : {0, 2, 1, 3})
    for (const KerasWeight& weight : plain.model.weights[0].second)
      old.weights[0].second.push_back(
          {weight.name + "_" + std::to_string(gate), Columns(weight.value, gate * 3, 3)});
  ExpectNear(RunModel(old, {x}), Values(want->at(0)));
}

TEST(KerasLayers, CudnnLstmIsAnLstmWithItsMatricesTransposed) {
  const KerasCase plain = PlainLstm();
  const Tensor x = Random({DType::kF32, {1, 5, 4}}, 3);
  const auto want = RunModel(plain.model, {x});
  ASSERT_TRUE(want) << want.error().message;
  KerasFixture cudnn = plain.model;
  cudnn.config["config"]["layers"][1]["class_name"] = "CuDNNLSTM";
  const auto transposed = [](const Tensor& t, int64_t rows, bool keep_shape) {
    std::vector<float> out(Values(t).size());
    const auto in = Values(t);
    for (int64_t gate = 0; gate < 4; ++gate)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < 3; ++c) {
          const int64_t flat = c * rows + r;  // of the transposed matrix [3, rows]
          const int64_t row = keep_shape ? flat / 3 : c, column = keep_shape ? flat % 3 : r;
          out[static_cast<size_t>(row * 12 + gate * 3 + column)] =
              in[static_cast<size_t>(r * 12 + gate * 3 + c)];
        }
    return Floats(t.type.shape, out);
  };
  auto& weights = cudnn.weights[0].second;
  weights[0].value = transposed(weights[0].value, 4, true);
  weights[1].value = transposed(weights[1].value, 3, false);
  std::vector<float> bias = Values(weights[2].value), both;
  for (const float v : bias) both.push_back(v - 1);
  both.insert(both.end(), 12, 1.f);
  weights[2].value = Floats({24}, both);
  ExpectNear(RunModel(cudnn, {x}), Values(want->at(0)));
}

TEST(KerasLayers, StatefulLstmRemembersTheLastCall) {
  KerasCase one = PlainLstm();
  const Tensor x = Random({DType::kF32, {1, 5, 4}}, 3);
  one.model.config["config"]["layers"][1]["config"]["stateful"] = true;
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, one.model);
  converter::Options options;
  options.registry = Rnn();
  const auto written = Convert(file, options, "out");
  ASSERT_TRUE(written) << written.error().message;
  const auto session = Open(written->path, Rnn());
  ASSERT_TRUE(session) << session.error().message;
  const auto first = Invoke(**session, {x}), second = Invoke(**session, {x});
  ASSERT_TRUE(first && second);
  EXPECT_NE(Difference(*first, *second), "");
  // Both calls at once are one call over the sequence twice.
  KerasCase twice = PlainLstm();
  twice.model.weights = one.model.weights;
  twice.model.config["config"]["layers"][0]["config"]["batch_input_shape"] = {1, 10, 4};
  std::vector<float> longer = Values(x), again = Values(x);
  longer.insert(longer.end(), again.begin(), again.end());
  ExpectNear(RunModel(twice.model, {Floats({1, 10, 4}, longer)}), Values(second->at(0)));
}

TEST(KerasLayers, AnOpenBatchStaysOpen) {
  KerasCase one = PlainLstm();
  one.model.config["config"]["layers"][0]["config"]["batch_input_shape"] = {nullptr, 5, 4};
  const Tensor x = Random({DType::kF32, {1, 5, 4}}, 3);
  std::vector<float> two = Values(x), again = Values(x);
  two.insert(two.end(), again.begin(), again.end());
  const auto single = RunModel(one.model, {x}), pair = RunModel(one.model, {Floats({2, 5, 4}, two)});
  ASSERT_TRUE(single) << single.error().message;
  std::vector<float> want = Values(single->at(0));
  want.insert(want.end(), want.begin(), want.begin() + 3);
  ExpectNear(pair, want);
}

TEST(KerasLayers, BothContainersHoldTheSameModel) {
  const Tensor x = Random({DType::kF32, {1, 5, 4}}, 3);
  const json layers =
      json::array({LayerEntry("LSTM", {{"units", 3}, {"return_sequences", true}}, "a"),
                   LayerEntry("Dense", {{"units", 2}}, "b"), LayerEntry("Dense", {{"units", 2}}, "c")});
  KerasFixture model{SequentialConfig({1, 5, 4}, layers),
                     {{"a",
                       {RandomWeight("kernel", {4, 12}), RandomWeight("recurrent_kernel", {3, 12}),
                        RandomWeight("bias", {12})}},
                      {"b", {RandomWeight("kernel", {3, 2}), RandomWeight("bias", {2})}},
                      {"c", {RandomWeight("kernel", {2, 2}), RandomWeight("bias", {2})}}}};
  const auto want = RunModel(model, {x});
  ASSERT_TRUE(want) << want.error().message;
  for (const std::string container : {"layers", "_layer_checkpoint_dependencies"}) {
    std::map<std::string, Tensor> weights;
    const auto put = [&](const std::string& group, size_t layer) {
      for (size_t i = 0; i < model.weights[layer].second.size(); ++i)
        weights[container + "/" + group + "/vars/" + std::to_string(i)] =
            model.weights[layer].second[i].value;
    };
    put("lstm/cell", 0);
    put("dense", 1);
    put("dense_1", 2);
    const std::string file = TestDir() + "/model.keras";
    WriteKeras(file, model.config, weights);
    ExpectNear(RunFile(file, {x}), Values(want->at(0)));
  }
}

// As Keras 3 writes a functional model: tensors with their history, in args and kwargs.
TEST(KerasLayers, Keras3DescribesCallsByTensors) {
  const auto tensor = [](const std::string& layer) {
    return json{
        {"class_name", "__keras_tensor__"},
        {"config", {{"shape", {nullptr, 2}}, {"dtype", "float32"}, {"keras_history", {layer, 0, 0}}}}};
  };
  const auto entry = [](const std::string& module, const std::string& class_name, json config,
                        const std::string& name, json nodes) {
    config["name"] = name;
    return json{{"module", module}, {"class_name", class_name},
                {"config", config}, {"registered_name", nullptr},
                {"name", name},     {"inbound_nodes", nodes}};
  };
  const auto call = [](json args) { return json::array({{{"args", args}, {"kwargs", json::object()}}}); };
  const json layers = json::array(
      {entry("keras.layers", "InputLayer", {{"batch_shape", {nullptr, 2}}, {"dtype", "float32"}}, "in",
             json::array()),
       entry("keras.layers", "Dense", {{"units", 2}, {"activation", "relu"}}, "dense", call({tensor("in")})),
       entry("keras.layers", "Add", json::object(), "sum",
             call({json::array({tensor("in"), tensor("dense")})})),
       entry("keras.src.ops.numpy", "Multiply", json::object(), "twice", call({tensor("sum"), 2.0}))});
  const json config = {{"module", "keras.src.models.functional"},
                       {"class_name", "Functional"},
                       {"registered_name", "Functional"},
                       {"config",
                        {{"name", "model"},
                         {"layers", layers},
                         {"input_layers", {"in", 0, 0}},
                         {"output_layers", {"twice", 0, 0}}}}};
  const std::string file = TestDir() + "/model.keras";
  WriteKeras(
      file, config,
      {{"layers/dense/vars/0", Floats({2, 2}, {1, 0, 0, -1})}, {"layers/dense/vars/1", Floats({2}, {0, 0})}});
  ExpectNear(RunFile(file, {Floats({1, 2}, {3, 4})}), {12, 8});
}

}  // namespace
}  // namespace fusebox::testing
