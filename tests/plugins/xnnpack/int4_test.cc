// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED of floats by weights with a scale per channel (4 bits) or per block (4 and 8 bits), for
// many numbers of rows: through XNNPACK, where it is correct, and with kernels only. References are in
// double.
#include <cmath>

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

struct Case {
  int64_t rows = 1, outputs = 40, depth = 64;
  int32_t block = 0;  // 0: a scale per channel
  DType weights = DType::kI4;
  bool bias = true, asymmetric = false;
  const char* activation = "NONE";
  bool open_rows = false;  // their number is unknown in the file
};

int64_t Blocks(const Case& c) { return c.block > 0 ? c.depth / c.block : 1; }

std::vector<int> ValuesOf(const Case& c) {
  const bool nibbles = c.weights == DType::kI4;
  return Noise<int>(static_cast<size_t>(c.outputs * c.depth), 5, nibbles ? -8 : -128, nibbles ? 8 : 128);
}

std::vector<float> ScalesOf(const Case& c) {
  std::vector<float> scales;
  for (int64_t i = 0; i < c.outputs * Blocks(c); ++i)
    scales.push_back(0.015625f * static_cast<float>(1 + i % 5));
  return scales;
}

std::vector<float> BiasOf(const Case& c) { return Noise<float>(static_cast<size_t>(c.outputs), 6, -3, 3); }

std::vector<uint8_t> BytesOf(const Case& c) {
  const std::vector<int> values = ValuesOf(c);
  std::vector<uint8_t> bytes(c.weights == DType::kI4 ? (values.size() + 1) / 2 : values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<unsigned>(values[i]);
    uint8_t& byte = bytes[c.weights == DType::kI4 ? i / 2 : i];
    if (c.weights != DType::kI4) byte = static_cast<uint8_t>(value);
    else byte = static_cast<uint8_t>(byte | (value & 15) << (i % 2 * 4));
  }
  return bytes;
}

std::unique_ptr<Module> NetOf(const Case& c) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {c.open_rows ? -1 : c.rows, c.depth});
  const ValueId w = net.Const<uint8_t>(c.weights, {c.outputs, c.depth}, BytesOf(c));
  Quant quant;
  const std::vector<float> scales = ScalesOf(c);
  quant.scales = scales;
  quant.zero_points = std::vector<int64_t>(scales.size());
  quant.block_size = c.block;
  net.function().value(w).quant = std::make_shared<const Quant>(quant);
  const ValueId bias = c.bias ? net.Const<float>(DType::kF32, {c.outputs}, BiasOf(c)) : kNoValue;
  return net.Take({net.Add(
      Op::kFullyConnected, {x, w, bias}, DType::kF32, {c.open_rows ? -1 : c.rows, c.outputs},
      Options("fused_activation_function", c.activation, "asymmetric_quantize_inputs", c.asymmetric))});
}

// Rows of different size, so that parameters of another row lead to other results.
Tensor InputOf(const Case& c) {
  std::vector<float> x = Noise<float>(static_cast<size_t>(c.rows * c.depth), 8, -1, 1.5);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= static_cast<float>(1 + i / static_cast<size_t>(c.depth) % 7);
  return {{DType::kF32, Shape({c.rows, c.depth})}, Buffer::Of<float>(x)};
}

// Quantization of an input moves each product by a step of its row at most.
void ExpectProduct(const Case& c, const Tensor& input, std::span<const float> y) {
  const std::vector<int> w = ValuesOf(c);
  const std::vector<float> scales = ScalesOf(c), bias = BiasOf(c);
  const auto x = input.data.As<float>();
  const int64_t block = c.block > 0 ? c.block : c.depth;
  for (int64_t row = 0; row < c.rows; ++row) {
    const float* const of_row = x.data() + row * c.depth;
    double largest = 0;
    for (int64_t k = 0; k < c.depth; ++k) largest = std::max<double>(largest, std::abs(of_row[k]));
    for (int64_t out = 0; out < c.outputs; ++out) {
      double sum = c.bias ? bias[static_cast<size_t>(out)] : 0, most = 0;
      for (int64_t k = 0; k < c.depth; ++k) {
        const double weight = double{scales[static_cast<size_t>(out * Blocks(c) + k / block)]} *
                              w[static_cast<size_t>(out * c.depth + k)];
        sum += weight * of_row[k];
        most += std::abs(weight);
      }
      if (std::string_view(c.activation) == "RELU") sum = std::max(sum, 0.0);
      ASSERT_NEAR(y[static_cast<size_t>(row * c.outputs + out)], sum, most * largest / 127 + 1e-5)
          << c.rows << " rows: row " << row << ", output " << out;
    }
  }
}

void Check(const Case& c, bool delegated, int threads = 1) {
  std::vector<Config::Delegate> delegates;
  if (delegated) delegates.push_back(AllOnXnnpack());
  const auto model = Model::FromModule(NetOf(c), {.registry = XnnpackRegistry(), .delegates = delegates});
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::Create(*model, {.threads = threads});
  ASSERT_TRUE(session) << session.error().message;
  const Tensor input = InputOf(c);
  ASSERT_TRUE((*session)->SetInput(0, input));
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE((*session)->Run());
    const auto output = (*session)->output(0);
    ASSERT_TRUE(output);
    ExpectProduct(c, input, output->data.As<const float>());
  }
}

TEST(Nibbles, AreCorrectForEveryNumberOfRows) {
  for (const bool delegated : {false, true})
    for (const int32_t block : {0, 32})
      for (const bool open_rows : {false, true})
        for (const int64_t rows : {1, 2, 3, 4, 7, 14, 15, 16, 17, 30, 43})
          Check({.rows = rows, .block = block, .open_rows = open_rows}, delegated);
}

// A partition of one row is right where one of two rows is not.
TEST(Nibbles, AreCorrectForOtherNumbersOfRowsThanThoseOfTheFile) {
  for (const int32_t block : {0, 32}) {
    const auto model = Model::FromModule(NetOf({.block = block}),
                                         {.registry = XnnpackRegistry(), .delegates = {{AllOnXnnpack()}}});
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::Create(*model, {});
    ASSERT_TRUE(session) << session.error().message;
    for (const int64_t rows : {1, 2, 5, 15, 1, 3}) {
      const Case c{.rows = rows, .block = block};
      const Tensor input = InputOf(c);
      ASSERT_TRUE((*session)->Resize(0, Shape({rows, c.depth})));
      ASSERT_TRUE((*session)->SetInput(0, input));
      ASSERT_TRUE((*session)->Run());
      ExpectProduct(c, input, (*session)->output(0)->data.As<const float>());
    }
  }
}

TEST(Nibbles, OfOneRowRunThroughXnnpack) {
  for (const int32_t block : {0, 32}) EXPECT_EQ(RunNet(NetOf({.block = block})).error, "");
}

TEST(BlockwiseKernel, IsTheProductOfTheValues) {
  for (const DType weights : {DType::kI4, DType::kI8})
    for (const int threads : {1, 2})
      for (const bool asymmetric : {false, true}) {
        Case c{.rows = 3, .outputs = 70, .depth = 60, .block = 20, .weights = weights};
        c.asymmetric = asymmetric;
        Check(c, false, threads);
        c = {.rows = 13, .outputs = 257, .depth = 66, .block = 6, .weights = weights, .bias = false};
        c.activation = "RELU";
        c.asymmetric = asymmetric;
        Check(c, false, threads);
        // Rows of an odd number of weights begin within a byte.
        Check({.rows = 2, .outputs = 5, .depth = 9, .block = 3, .weights = weights}, false, threads);
      }
}

std::string RefusalOf(const std::function<void(Quant&)>& change) {
  auto module = NetOf({.rows = 2, .block = 32});
  Function& f = *module->functions[0];
  Value& w = f.value(f.nodes[0]->operands[1]);
  Quant quant = *w.quant;
  change(quant);
  w.quant = std::make_shared<const Quant>(quant);
  const auto model = Model::FromModule(
      std::move(module), {.registry = XnnpackRegistry(), .delegates = std::vector<Config::Delegate>{}});
  if (!model) return model.error().message;
  const auto session = Session::Create(*model, {});
  return session ? "" : session.error().message;
}

TEST(BlockwiseKernel, RefusesWhatIsNotAProduct) {
  EXPECT_NE(RefusalOf([](Quant& q) { q.block_size = 48; }).find("blocks of 48"), std::string::npos);
  EXPECT_NE(RefusalOf([](Quant& q) {
              std::vector<int64_t> zeros(q.scales.size());
              zeros[3] = 1;
              q.zero_points = zeros;
            }).find("zero point"),
            std::string::npos);
  EXPECT_NE(RefusalOf([](Quant& q) {
              std::vector<float> scales(q.scales.begin(), q.scales.end());
              scales[2] = 0;
              q.scales = scales;
            }).find("scale"),
            std::string::npos);
}

}  // namespace
}  // namespace fusebox::xnnpack_test
