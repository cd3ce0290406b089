// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/lstm_net.h"

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Net, xnnpack_test::Noise, xnnpack_test::Options;
using Dims = std::vector<int64_t>;

// The op's 24 operands, but for the input and the states.
class Weights {
 public:
  Weights(Net& net, const LstmNet& of) : net_(net), of_(of), operands_(24, kNoValue) {}

  std::vector<ValueId> Add() {
    for (size_t k = of_.cifg ? 1 : 0; k < 4; ++k) {
      Put(1 + k, {of_.cells, of_.inputs});
      Put(5 + k, {of_.cells, of_.width()});
      Put(12 + k, {of_.cells});
      if (of_.layer_norm) Put(20 + k, {of_.cells}, 0.5);
      if (of_.peephole && k < 3) Put(9 + k, {of_.cells});
    }
    if (of_.outputs) Put(16, {of_.outputs, of_.cells});
    if (of_.projection_bias) Put(17, {of_.outputs});
    return operands_;
  }

 private:
  void Put(size_t operand, Dims dims, double least = -0.6) {
    size_t count = 1;
    for (const int64_t d : dims) count *= static_cast<size_t>(d);
    const auto values = Noise<float>(count, static_cast<uint32_t>(operand), least, least + 1.2);
    operands_[operand] = net_.Const(DType::kF32, std::move(dims), values);
  }

  Net& net_;
  const LstmNet& of_;
  std::vector<ValueId> operands_;
};

ValueId State(Net& net, Dims dims) {
  const ValueId in = net.Input(DType::kF32, dims);
  const ValueId one = net.Const(DType::kF32, {}, std::vector<float>{1});
  return net.Add(Op::kMul, {in, one}, DType::kF32, std::move(dims));
}

}  // namespace

std::unique_ptr<Module> LstmNet::Module() const {
  Net net;
  Dims in = {batch, steps, inputs};
  if (one_step) in = {batch, inputs};
  if (time_major) in = {steps, batch, inputs};
  const ValueId x = net.Input(DType::kF32, in);
  std::vector<ValueId> operands = Weights(net, *this).Add();
  operands[0] = x;
  operands[18] = State(net, {batch, width()});
  operands[19] = State(net, {batch, cells});
  Attrs attrs = Options("fused_activation_function", activation, "cell_clip", static_cast<double>(cell_clip),
                        "proj_clip", static_cast<double>(projection_clip));
  if (time_major) attrs.Set("time_major", true);
  in.back() = width();
  const Node& node = net.function().AddNode(
      one_step ? Op::kLstm : Op::kUnidirectionalSequenceLstm, operands,
      {net.Of(DType::kF32, in), net.Of(DType::kF32, {batch, width()}), net.Of(DType::kF32, {batch, cells})},
      attrs);
  return net.Take(node.results);
}

std::unique_ptr<Module> BasicLstmNet(int64_t batch, int64_t inputs, int64_t units) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {batch, inputs});
  const ValueId h = net.Input(DType::kF32, {batch, units}), c = net.Input(DType::kF32, {batch, units});
  const int64_t width = inputs + units;
  const ValueId weights = net.Const(DType::kF32, {4 * units, width},
                                    Noise<float>(static_cast<size_t>(4 * units * width), 1, -0.6, 0.6));
  const ValueId bias =
      net.Const(DType::kF32, {4 * units}, Noise<float>(static_cast<size_t>(4 * units), 2, -0.6, 0.6));
  const Node& node =
      net.function().AddNode(Op::kLstm, {x, h, weights, bias, c},
                             {net.Of(DType::kF32, {batch, units}), net.Of(DType::kF32, {batch, units}),
                              net.Of(DType::kF32, {batch, width}), net.Of(DType::kF32, {batch, 4 * units})},
                             Options("fused_activation_function", "TANH", "kernel_type", "BASIC"));
  return net.Take(node.results);
}

}  // namespace fusebox::testing
