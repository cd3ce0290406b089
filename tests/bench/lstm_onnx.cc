// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's LSTM and DynamicQuantizeLSTM.
#include "tests/bench/lstm_engine.h"
#include "tests/bench/onnx.h"

namespace fusebox::bench {
namespace {

// ONNX stacks the gates in the order i, o, f, c.
constexpr int kOrder[] = {0, 3, 1, 2};

std::vector<float> Stack(const std::vector<float> (&gates)[4]) {
  std::vector<float> stacked;
  for (const int k : kOrder) stacked.insert(stacked.end(), gates[k].begin(), gates[k].end());
  return stacked;
}

// W or R as 8-bit numbers: [columns][gate][unit], with a scale for each gate and unit.
std::string ByteTensors(const LstmProblem& p, const std::string& name, const std::vector<float> (&gates)[4]) {
  const auto units = static_cast<size_t>(p.units), columns = gates[0].size() / units;
  std::vector<int8_t> values(4 * units * columns);
  std::vector<float> scales;
  for (size_t i = 0; i < 4; ++i) {
    const ByteWeights bytes = ToBytes(gates[kOrder[i]]);
    scales.insert(scales.end(), units, bytes.scale);
    for (size_t unit = 0; unit < units; ++unit) {
      for (size_t k = 0; k < columns; ++k)
        values[(k * 4 + i) * units + unit] = bytes.values[unit * columns + k];
    }
  }
  const int64_t width = 4 * p.units;
  return onnx::Initializer(name, {1, static_cast<int64_t>(columns), width}, values) +
         onnx::Initializer(name + "_scale", {1, width}, scales) +
         onnx::Initializer(name + "_zero", {1, width}, std::vector<int8_t>(4 * units));
}

std::string WriteModel(const LstmProblem& p) {
  const std::string units = onnx::IntAttribute("hidden_size", p.units);
  std::vector<float> bias = Stack(p.bias);
  bias.resize(2 * bias.size());
  std::string graph = onnx::Initializer("B", {1, 8 * p.units}, bias);
  if (p.bytes()) {
    graph += onnx::Node("DynamicQuantizeLSTM",
                        {"X", "W", "R", "B", "", "", "", "", "W_scale", "W_zero", "R_scale", "R_zero"}, {"Y"},
                        units, "com.microsoft") +
             ByteTensors(p, "W", p.kernel) + ByteTensors(p, "R", p.recurrent);
  } else {
    graph += onnx::Node("LSTM", {"X", "W", "R", "B"}, {"Y"}, units) +
             onnx::Initializer("W", {1, 4 * p.units, p.inputs}, Stack(p.kernel)) +
             onnx::Initializer("R", {1, 4 * p.units, p.units}, Stack(p.recurrent));
  }
  return onnx::Model(graph + onnx::Input("X", onnx::kFloat, {p.steps, 1, p.inputs}) +
                     onnx::Output("Y", onnx::kFloat, {p.steps, 1, 1, p.units}));
}

class Onnx : public LstmEngine {
 public:
  Onnx(const LstmProblem& p, const std::string& library)
      : x_(p.x),
        y_(static_cast<size_t>(p.steps * p.units)),
        session_(library, WriteModel(p), p.threads),
        in_{session_.Tensor(x_.data(), x_.size() * 4, {p.steps, 1, p.inputs}, onnx::kFloat)},
        out_{session_.Tensor(y_.data(), y_.size() * 4, {p.steps, 1, 1, p.units}, onnx::kFloat)} {}

  void Run() override { session_.Run({"X"}, in_, {"Y"}, out_); }
  std::vector<float> output() const override { return y_; }

 private:
  std::vector<float> x_, y_;
  onnx::Session session_;
  std::vector<void*> in_, out_;
};

}  // namespace

std::unique_ptr<LstmEngine> OnnxEngine(const LstmProblem& problem, const std::string& library) {
  return std::make_unique<Onnx>(problem, library);
}

}  // namespace fusebox::bench
