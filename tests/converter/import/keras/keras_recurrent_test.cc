// SPDX-License-Identifier: Apache-2.0
// Recurrent layers that TensorFlow.js does not have, and forms of weights that must come to the same.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/converter/import/keras/keras_run.h"

namespace fusebox::testing {
namespace {

const std::vector<float>& Weight(const KerasCase& one, const std::string& name) {
  static std::vector<float> values;
  for (const KerasWeight& weight : one.model.weights[0].second)
    if (weight.name == name) values = Values(weight.value);
  return values;
}

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

TEST(KerasRecurrent, GruAppliesTheResetGateAfterItsProduct) {
  const KerasCase one =
      OneLayer("", "GRU", {{"units", 3}, {"reset_after", true}, {"return_sequences", true}}, {1, 5, 4},
               {{"kernel", {4, 9}}, {"recurrent_kernel", {3, 9}}, {"bias", {2, 9}}});
  const Tensor x = Random({DType::kF32, {1, 5, 4}}, 3);
  const auto want = GruResetAfter(one, x, 5, 4, 3);
  ExpectNear(RunModel(one.model, {x}), want);
  ExpectNear(RunFile(TestDir() + "/model.h5", {x}, converter::Composites::kFuse), want);
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

TEST(KerasRecurrent, LstmOfKeras1ComesGateByGate) {
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

TEST(KerasRecurrent, CudnnLstmIsAnLstmWithItsMatricesTransposed) {
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

TEST(KerasRecurrent, StatefulLstmRemembersTheLastCall) {
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

TEST(KerasRecurrent, AnOpenBatchStaysOpen) {
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

}  // namespace
}  // namespace fusebox::testing
