// SPDX-License-Identifier: Apache-2.0
// The rnn plugin's kernel, called through the plugin ABI.
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

std::vector<FakeTensor> Operands(const LstmProblem& p) {
  std::vector<FakeTensor> operands(24);
  operands[0] = FakeTensor::Of<float>(FBX_F32, {1, p.steps, p.inputs}, p.x);
  for (size_t k = 0; k < 4; ++k) {
    operands[1 + k] = FakeTensor::Of<float>(FBX_F32, {p.units, p.inputs}, p.kernel[k], FBX_TENSOR_CONST);
    operands[5 + k] = FakeTensor::Of<float>(FBX_F32, {p.units, p.units}, p.recurrent[k], FBX_TENSOR_CONST);
    operands[12 + k] = FakeTensor::Of<float>(FBX_F32, {p.units}, p.bias[k], FBX_TENSOR_CONST);
  }
  const std::vector<float> zeros(static_cast<size_t>(p.units));
  for (const size_t state : {18, 19})
    operands[state] = FakeTensor::Of<float>(FBX_F32, {1, p.units}, zeros, FBX_TENSOR_VARIABLE);
  return operands;
}

class Ours : public LstmEngine {
 public:
  explicit Ours(const LstmProblem& problem) {
    const fbx_plugin* plugin = nullptr;
    if (fusebox_entry_v1.load(host_.abi(), &plugin) != FBX_OK)
      throw std::runtime_error("the plugin does not load");
    auto operands = Operands(problem);
    std::vector<FakeTensor> results{FakeTensor(FBX_F32, {1, problem.steps, problem.units}).Allocate(4),
                                    operands[18], operands[19]};
    testing::FakeAttrs attrs{{"fused_activation_function", std::string("TANH")}};
    node_ =
        std::make_unique<FakeNode>(host_, plugin->kernels[0], attrs, std::move(operands), std::move(results));
    if (node_->Supports() != FBX_OK || node_->Prepare() != FBX_OK)
      throw std::runtime_error("the kernel declines");
  }
  void Run() override {
    if (node_->Invoke() != FBX_OK) throw std::runtime_error("the kernel fails");
  }
  const float* output() const override { return node_->result(0).data<float>(); }

 private:
  FakeHost host_;
  std::unique_ptr<FakeNode> node_;
};

}  // namespace

std::unique_ptr<LstmEngine> OurEngine(const LstmProblem& problem) { return std::make_unique<Ours>(problem); }

LstmProblem RandomProblem(int steps, int units) {
  LstmProblem p{steps, units, units, {}, {}, {}, {}};
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
  }
  return p;
}

}  // namespace fusebox::bench
