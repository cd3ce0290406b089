// SPDX-License-Identifier: Apache-2.0
// The rnn plugin's kernel, called through the plugin ABI.
#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "tests/bench/lstm_engine.h"
#include "tests/plugins/rnn/fake_host.h"

namespace fusebox::bench {
namespace {

using testing::FakeHost;
using testing::FakeNode;
using testing::FakeTensor;

FakeTensor Weights(const LstmProblem& p, std::vector<int64_t> dims, const std::vector<float>& weights) {
  if (!p.bytes()) return FakeTensor::Of<float>(FBX_F32, std::move(dims), weights, FBX_TENSOR_CONST);
  const ByteWeights bytes = ToBytes(weights);
  auto tensor = FakeTensor::Of<int8_t>(FBX_I8, std::move(dims), bytes.values, FBX_TENSOR_CONST);
  tensor.Quantized(bytes.scale);
  return tensor;
}

FakeTensor Bias(const LstmProblem& p, size_t gate) {
  const std::vector<float>& bias = p.bias[gate];
  if (!p.integers()) return FakeTensor::Of<float>(FBX_F32, {p.units}, bias, FBX_TENSOR_CONST);
  const float scale = kInputScale * ToBytes(p.kernel[gate]).scale;
  return FakeTensor::Of<int32_t>(FBX_I32, {p.units}, ToIntegers<int32_t>(bias, scale), FBX_TENSOR_CONST);
}

std::vector<FakeTensor> Operands(const LstmProblem& p) {
  std::vector<FakeTensor> operands(24);
  if (p.integers())
    operands[0] = FakeTensor::Of<int8_t>(FBX_I8, {1, p.steps, p.inputs}, ToIntegers<int8_t>(p.x, kInputScale))
                      .Quantized(kInputScale);
  else operands[0] = FakeTensor::Of<float>(FBX_F32, {1, p.steps, p.inputs}, p.x);
  for (size_t k = 0; k < 4; ++k) {
    operands[1 + k] = Weights(p, {p.units, p.inputs}, p.kernel[k]);
    operands[5 + k] = Weights(p, {p.units, p.units}, p.recurrent[k]);
    operands[12 + k] = Bias(p, k);
  }
  const auto units = static_cast<size_t>(p.units);
  if (p.integers()) {
    operands[18] =
        FakeTensor::Of<int8_t>(FBX_I8, {1, p.units}, std::vector<int8_t>(units), FBX_TENSOR_VARIABLE)
            .Quantized(kOutputScale);
    operands[19] =
        FakeTensor::Of<int16_t>(FBX_I16, {1, p.units}, std::vector<int16_t>(units), FBX_TENSOR_VARIABLE)
            .Quantized(kCellScale);
    return operands;
  }
  for (const size_t state : {18, 19})
    operands[state] =
        FakeTensor::Of<float>(FBX_F32, {1, p.units}, std::vector<float>(units), FBX_TENSOR_VARIABLE);
  return operands;
}

class Ours : public LstmEngine {
 public:
  explicit Ours(const LstmProblem& problem) : integers_(problem.integers()) {
    const fbx_plugin* plugin = nullptr;
    if (fusebox_entry_v1.load(host_.abi(), &plugin) != FBX_OK)
      throw std::runtime_error("the plugin does not load");
    auto operands = Operands(problem);
    FakeTensor output(integers_ ? FBX_I8 : FBX_F32, {1, problem.steps, problem.units});
    output.Allocate(integers_ ? 1 : 4);
    if (integers_) output.Quantized(kOutputScale);
    std::vector<FakeTensor> results{output, operands[18], operands[19]};
    testing::FakeAttrs attrs{{"fused_activation_function", std::string("TANH")}};
    node_ =
        std::make_unique<FakeNode>(host_, plugin->kernels[0], attrs, std::move(operands), std::move(results));
    if (node_->Supports() != FBX_OK || node_->Prepare() != FBX_OK)
      throw std::runtime_error("the kernel declines");
  }
  void Run() override {
    if (node_->Invoke() != FBX_OK) throw std::runtime_error("the kernel fails");
  }
  std::vector<float> output() const override {
    const FakeTensor& result = node_->result(0);
    if (integers_) return FromBytes(result.data<int8_t>(), result.count());
    return {result.data<float>(), result.data<float>() + result.count()};
  }

 private:
  bool integers_;
  FakeHost host_;
  std::unique_ptr<FakeNode> node_;
};

void RoundToBytes(std::vector<float>& weights) {
  const ByteWeights bytes = ToBytes(weights);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(bytes.values[i]) * bytes.scale;
}

}  // namespace

std::unique_ptr<LstmEngine> OurEngine(const LstmProblem& problem) { return std::make_unique<Ours>(problem); }

ByteWeights ToBytes(const std::vector<float>& weights) {
  float largest = 0;
  for (const float w : weights) largest = std::max(largest, std::abs(w));
  ByteWeights bytes{{}, largest / 127};
  for (const float w : weights) bytes.values.push_back(static_cast<int8_t>(std::lround(w / bytes.scale)));
  return bytes;
}

std::vector<float> FromBytes(const int8_t* outputs, size_t count) {
  std::vector<float> floats;
  for (size_t i = 0; i < count; ++i) floats.push_back(kOutputScale * static_cast<float>(outputs[i]));
  return floats;
}

LstmProblem RandomProblem(int steps, int units, LstmForm form) {
  LstmProblem p{steps, units, units, {}, {}, {}, {}, form};
  std::mt19937 random(static_cast<uint32_t>(units));
  const auto fill = [&](std::vector<float>& values, int count, double scale) {
    std::uniform_real_distribution<float> uniform(static_cast<float>(-scale), static_cast<float>(scale));
    values.resize(static_cast<size_t>(count));
    for (float& v : values) v = uniform(random);
  };
  const double scale = 1 / std::sqrt(units);
  fill(p.x, steps * units, 1);
  for (int k = 0; k < 4; ++k) {
    fill(p.kernel[k], units * units, scale);
    fill(p.recurrent[k], units * units, scale);
    fill(p.bias[k], units, scale);
    if (p.bytes()) {
      RoundToBytes(p.kernel[k]);
      RoundToBytes(p.recurrent[k]);
    }
  }
  return p;
}

}  // namespace fusebox::bench
